// Package expand writes operators by others, through whose rules gradients pass.
package expand
