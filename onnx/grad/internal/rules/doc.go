// Package rules has the vector-Jacobian products of operators, one formula each.
package rules
