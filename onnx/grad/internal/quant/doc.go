// Package quant has the rules and expansions of operators on quantised values.
package quant
