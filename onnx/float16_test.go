package onnx

import (
	"math"
	"math/big"
	"math/rand/v2"
	"sort"
	"testing"
)

// slowFloat is the definition of a small binary format with expBits of exponent
// and fracBits of fraction, in exact rational arithmetic.
type slowFloat struct{ expBits, fracBits int }

var slowFormats = []struct {
	name   string
	slow   slowFloat
	widen  func(uint16) float32
	narrow func(float32) uint16
}{
	{"float16", slowFloat{5, 10}, Float16ToFloat32, Float16FromFloat32},
	{"bfloat16", slowFloat{8, 7}, bFloat16ToFloat32, bfloat16FromFloat32},
}

// value returns the magnitude of the finite number with the given bits.
func (s slowFloat) value(bits uint16) *big.Rat {
	exp := int(bits>>s.fracBits) & (1<<s.expBits - 1)
	frac := int64(bits) & (1<<s.fracBits - 1)
	if exp == 0 {
		exp = 1
	} else {
		frac += 1 << s.fracBits
	}
	e := exp - (1<<(s.expBits-1) - 1) - s.fracBits
	v := new(big.Rat).SetInt64(frac)
	p := new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), uint(max(e, -e))))
	if e < 0 {
		return v.Quo(v, p)
	}
	return v.Mul(v, p)
}

func (s slowFloat) infinity() uint16 { return (1<<s.expBits - 1) << s.fracBits }

// table returns the magnitudes of all numbers in order; they are exact in float64.
// Infinity counts as the next power of two.
func (s slowFloat) table(t *testing.T) []float64 {
	list := make([]float64, s.infinity()+1)
	for i := range list {
		v, exact := s.value(uint16(i)).Float64()
		if !exact {
			t.Fatalf("%#x is not exact in float64", i)
		}
		list[i] = v
	}
	return list
}

// round returns the place in the table of the number nearest to the magnitude v,
// ties to the even place. Differences of neighbours are exact in float64.
func round(table []float64, v float64) uint16 {
	hi := sort.SearchFloat64s(table, v)
	switch {
	case hi == len(table):
		return uint16(hi - 1)
	case table[hi] == v:
		return uint16(hi)
	}
	lo := hi - 1
	if below, above := v-table[lo], table[hi]-v; below < above || below == above && lo%2 == 0 {
		return uint16(lo)
	}
	return uint16(hi)
}

func TestWidenAllPatterns(t *testing.T) {
	for _, f := range slowFormats {
		for i := range 1 << 16 {
			bits := uint16(i)
			got, mag := f.widen(bits), bits&0x7fff
			if math.Signbit(float64(got)) != (bits&0x8000 != 0) {
				t.Fatalf("%s %#04x: wrong sign: %v", f.name, bits, got)
			}
			switch inf := f.slow.infinity(); {
			case mag > inf:
				if !math.IsNaN(float64(got)) {
					t.Fatalf("%s %#04x: %v, want NaN", f.name, bits, got)
				}
				continue // narrowing makes a NaN quiet
			case mag == inf:
				if !math.IsInf(float64(got), 0) {
					t.Fatalf("%s %#04x: %v, want infinity", f.name, bits, got)
				}
			default:
				want, exact := f.slow.value(mag).Float32()
				if !exact || float32(math.Abs(float64(got))) != want {
					t.Fatalf("%s %#04x: %v, want %v", f.name, bits, got, want)
				}
			}
			if back := f.narrow(got); back != bits {
				t.Fatalf("%s %#04x: %v goes back to %#04x", f.name, bits, got, back)
			}
		}
	}
}

// TestNarrow tries every pattern of 16 bits, the middle between it and the next,
// and the float32 numbers beside that; then random ones.
func TestNarrow(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, f := range slowFormats {
		table := f.slow.table(t)
		check := func(x float32) {
			if math.IsNaN(float64(x)) {
				return
			}
			want := f.slow.infinity()
			if !math.IsInf(float64(x), 0) {
				want = round(table, math.Abs(float64(x)))
			}
			if math.Signbit(float64(x)) {
				want |= 0x8000
			}
			if got := f.narrow(x); got != want {
				t.Fatalf("%s of %v (%#08x): %#04x, want %#04x", f.name, x, math.Float32bits(x), got, want)
			}
		}
		for i := range f.slow.infinity() {
			a, b := f.widen(i), table[i+1]
			mid := float32((float64(a) + b) / 2)
			for _, x := range []float32{a, mid, math.Nextafter32(mid, a), math.Nextafter32(mid, float32(math.Inf(1)))} {
				check(x)
				check(-x)
			}
		}
		for range 200000 {
			check(math.Float32frombits(rng.Uint32()))
		}
		for _, x := range []float32{65504, 65519.996, 65520, 65536, math.MaxFloat32, 0x1p-25, 0x1.8p-25, 0x1p-26, 1e-45} {
			check(x)
			check(-x)
		}
	}
}

func TestNarrowNaN(t *testing.T) {
	for _, f := range slowFormats {
		for _, bits := range []uint32{0x7f800001, 0x7fc00000, 0xffffffff, 0xff800001, 0x7f802000} {
			got := f.narrow(math.Float32frombits(bits))
			if got&0x7fff <= f.slow.infinity() || got>>15 != uint16(bits>>31) {
				t.Errorf("%s of NaN %#x: %#04x", f.name, bits, got)
			}
		}
	}
}

func BenchmarkFloat16ToFloat32(b *testing.B) {
	var sum float32
	for i := range b.N {
		sum += Float16ToFloat32(uint16(i))
	}
	_ = sum
}

// bfloat16FromFloat32 returns the bits of the bfloat16 nearest to f.
func bfloat16FromFloat32(f float32) uint16 {
	b := math.Float32bits(f)
	if b&0x7fffffff > 0x7f800000 { // NaN
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}
