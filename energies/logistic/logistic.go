// Package logistic computes the logistic function, 1/(1+e^-t), its integral log(1+e^t), and draws from
// it. Energies and samplers of two-valued sites spend most of their own time there.
package logistic

import "math"

// Sum is Σ log(1+e^t) over many t, with one logarithm for hundreds of them: it keeps Σ max(t, 0) and
// Π (1+e^-|t|), whose factors are at most 2. Its absolute error is about 1e-16 a term. Start from
// [NewSum].
type Sum struct{ linear, product float64 }

// NewSum returns a sum without terms.
func NewSum() Sum { return Sum{product: 1} }

// Add adds log(1+e^t).
func (s *Sum) Add(t float64) {
	s.linear += max(t, 0)
	if s.product *= 1 + expMinus(math.Abs(t)); s.product > mostProduct {
		s.linear, s.product = s.linear+math.Log(s.product), 1
	}
}

// mostProduct may be doubled without overflow.
const mostProduct = 0x1p1000

// Value returns the sum.
func (s *Sum) Value() float64 { return s.linear + math.Log(s.product) }

type float interface{ float32 | float64 }

// Sigmoids sets p[k] to 1/(1+e^-(t[k]-shift)), with an absolute error of about 1e-16, and returns Σ
// log(1+e^(t[k]-shift)). p and t have equal lengths and may be the same slice.
func Sigmoids[T float](p, t []T, shift float64) float64 {
	linear, product := 0.0, 1.0
	p = p[:len(t)]
	for k, x := range t {
		y := float64(x) - shift
		e := expMinus(math.Abs(y))
		f := 1 + e
		linear += max(y, 0)
		if product *= f; product > mostProduct {
			linear, product = linear+math.Log(product), 1
		}
		top := [2]float64{1, e} // a branch on the sign could not be predicted
		p[k] = T(top[math.Float64bits(y)>>63] / f)
	}
	return linear + math.Log(product)
}

// expMinus returns e^-y for y ≥ 0, for adding it to 1: below 2⁻⁵³ it is 0, elsewhere its relative
// error is about 1e-16. It is NaN where y is.
func expMinus(y float64) float64 {
	if !(y < expReach) {
		if y >= expReach {
			return 0
		}
		return y // NaN
	}
	k := int(y * expBins)
	r := y - float64(k)*(1.0/expBins)
	return expTable[k] * (1 - r*(1-r*(1.0/2-r*(1.0/6-r*(1.0/24-r*(1.0/120-r*(1.0/720)))))))
}

const (
	expReach = 37
	expBins  = 64
)

var expTable = func() (table [expReach * expBins]float64) {
	for k := range table {
		table[k] = math.Exp(-float64(k) / expBins)
	}
	return table
}()
