// Package bench runs the experiments with which papers compare samplers, and says for
// each claim of the paper whether it holds here.
//
// An [Experiment] is one file: a function that returns a [Result], and a line in the list
// in experiment.go. A result is a table, figures drawn from it, and claims.
package bench
