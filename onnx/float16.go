package onnx

import "math"

// The two 16-bit float types, as bits.
//
//	float16:  1 sign, 5 exponent (bias 15),  10 fraction; IEEE 754 binary16
//	bfloat16: 1 sign, 8 exponent (bias 127),  7 fraction; the high half of a float32
//
// Narrowing rounds to nearest, ties to even, and overflows to infinity. A NaN becomes a quiet NaN with
// the high bits of its payload. Widening is exact and keeps the payload.

// Float16ToFloat32 returns the value of the float16 with the given bits.
func Float16ToFloat32(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	exp, frac := uint32(h>>10&0x1f), uint32(h&0x3ff)
	switch exp {
	case 0: // zero or subnormal: frac × 2⁻²⁴, a normal float32
		v := math.Float32bits(float32(frac) * 0x1p-24)
		return math.Float32frombits(sign | v)
	case 0x1f:
		return math.Float32frombits(sign | 0x7f800000 | frac<<13)
	}
	return math.Float32frombits(sign | (exp+127-15)<<23 | frac<<13)
}

// Float16FromFloat32 returns the bits of the float16 nearest to f.
func Float16FromFloat32(f float32) uint16 {
	b := math.Float32bits(f)
	sign, mag := uint16(b>>16&0x8000), b&0x7fffffff
	switch {
	case mag > 0x7f800000: // NaN
		return sign | 0x7e00 | uint16(mag>>13&0x3ff)
	case mag >= 0x477ff000: // 65520, half way between 65504 and 65536, and above
		return sign | 0x7c00
	case mag >= 0x38800000: // 2⁻¹⁴ and above: normal
		mag -= (127 - 15) << 23
		return sign | uint16((mag+0xfff+mag>>13&1)>>13)
	case mag < 0x33000000: // below 2⁻²⁵
		return sign
	}
	// Subnormal: units of 2⁻²⁴. The significand has 24 bits, the lowest of weight
	// 2^(exp-150).
	shift := 126 - mag>>23
	frac := mag&0x7fffff | 0x800000
	half := uint32(1) << (shift - 1)
	return sign | uint16((frac+half-1+frac>>shift&1)>>shift)
}

// bFloat16ToFloat32 returns the value of the bfloat16 with the given bits.
func bFloat16ToFloat32(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }
