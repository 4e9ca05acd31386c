// Package experiment repeats the experiments with which papers compare samplers, and says for each claim of
// the paper whether it holds here.
//
// An [Experiment] is one file: a function that returns a [Result], and one entry in the list of
// experiment.go. A result is a table, figures drawn from it, and claims.
package experiment
