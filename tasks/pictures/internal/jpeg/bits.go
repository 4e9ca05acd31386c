package jpeg

// bitReader reads the entropy-coded bits of a scan, up to the next marker.
type bitReader struct {
	data []byte
	acc  uint64
	n    int // bits in acc
	fake int // of these, zeros that stand for data that is not there
}

// fill makes at least 32 bits available.
func (b *bitReader) fill() {
	for b.n <= 48 {
		var next byte
		switch {
		case len(b.data) > 0 && b.data[0] != 0xff:
			next, b.data = b.data[0], b.data[1:]
		case len(b.data) > 1 && b.data[1] == 0: // a stuffed 0xff
			next, b.data = 0xff, b.data[2:]
		default:
			b.fake += 8
		}
		b.acc = b.acc<<8 | uint64(next)
		b.n += 8
	}
}

// spent reports whether bits were taken that were not there.
func (b *bitReader) spent() bool { return b.n < b.fake }

// take returns up to 16 bits.
func (b *bitReader) take(n int) int32 {
	if b.n < 32 {
		b.fill()
	}
	b.n -= n
	return int32(b.acc >> b.n & (1<<n - 1))
}

// signed returns a number of n bits of which the first tells the sign (T.81, F.2.2.1).
func (b *bitReader) signed(n int) int32 {
	v := b.take(n)
	if n > 0 && v < 1<<(n-1) {
		v += -1<<n + 1
	}
	return v
}

// restart goes behind a restart marker, which must be the next thing there is.
func (b *bitReader) restart(number int) bool {
	if b.n-b.fake >= 8 || b.spent() || len(b.data) < 2 || b.data[0] != 0xff || b.data[1] != byte(0xd0+number%8) {
		return false
	}
	*b = bitReader{data: b.data[2:]}
	return true
}

// huffman is a table of codes.
type huffman struct {
	fast   [256]uint16 // by the first eight bits: length and value of a code, or 0
	end    [17]int32   // by length: one behind the last code
	offset [17]int32   // by length: what added to a code is the place of its value
	values []byte
}

func (f *file) huffmanTables(s []byte) error {
	for len(s) > 0 {
		if len(s) < 17 || s[0]>>4 > 1 || s[0]&15 > 3 {
			return errUnusual
		}
		n := 0
		for _, count := range s[1:17] {
			n += int(count)
		}
		if n > 256 || len(s) < 17+n {
			return errUnusual
		}
		h := &huffman{values: s[17 : 17+n]}
		code, at := int32(0), int32(0)
		for length := 1; length <= 16; length++ {
			h.offset[length] = at - code
			for range s[length] {
				if length <= 8 {
					first := code << (8 - length)
					for i := first; i < first+1<<(8-length) && i < 256; i++ {
						h.fast[i] = uint16(length)<<8 | uint16(h.values[at])
					}
				}
				code++
				at++
			}
			h.end[length] = code
			if code > 1<<length {
				return errUnusual
			}
			code <<= 1
		}
		f.tables[s[0]>>4][s[0]&15] = h
		s = s[17+n:]
	}
	return nil
}

// symbol reads a code.
func (b *bitReader) symbol(h *huffman) (byte, bool) {
	if b.n < 32 {
		b.fill()
	}
	if e := h.fast[b.acc>>(b.n-8)&255]; e != 0 {
		b.n -= int(e >> 8)
		return byte(e), true
	}
	for length := 9; length <= 16; length++ {
		code := int32(b.acc >> (b.n - length) & (1<<length - 1))
		if code < h.end[length] {
			b.n -= length
			at := code + h.offset[length]
			if at < 0 || int(at) >= len(h.values) {
				return 0, false
			}
			return h.values[at], true
		}
	}
	return 0, false
}

// scan is what decoding the blocks of a scan needs.
type scan struct {
	bits        bitReader
	progressive bool
	from, to    int   // the coefficients
	high, low   int   // their bits: high is 0 in the first scan of a coefficient
	run         int32 // blocks without a further coefficient
}

// block decodes the next block, and reports whether it could.
func (c *scan) block(p *component, block *[64]int16, tables [2]*huffman) bool {
	ok := true
	switch {
	case c.from == 0 && c.high > 0:
		if c.bits.take(1) == 1 {
			block[0] |= 1 << c.low
		}
	case c.from == 0:
		var size byte
		if size, ok = c.bits.symbol(tables[0]); ok && size <= 15 {
			p.dc += c.bits.signed(int(size))
			block[0] = int16(p.dc << c.low)
		} else {
			return false
		}
	}
	switch {
	case c.to == 0:
	case c.high > 0:
		ok = c.refine(block, tables[1])
	default:
		ok = c.first(block, tables[1])
	}
	return ok && !c.bits.spent()
}

// first decodes coefficients that are all zero so far (T.81, F.2.2.2 and G.1.2.2).
func (c *scan) first(block *[64]int16, table *huffman) bool {
	if c.run > 0 {
		c.run--
		return true
	}
	for k := max(c.from, 1); k <= c.to; k++ {
		code, ok := c.bits.symbol(table)
		if !ok {
			return false
		}
		zeros, size := int(code>>4), int(code&15)
		if size == 0 && zeros < 15 {
			if zeros > 0 && !c.progressive {
				return false
			}
			c.run = 1<<zeros + c.bits.take(zeros) - 1
			return true
		}
		k += zeros
		if size == 0 {
			continue
		}
		if k > c.to {
			return false
		}
		block[k] = int16(c.bits.signed(size) << c.low)
	}
	return true
}

// refine adds a bit to coefficients, some of which become non-zero with it (T.81, G.1.2.3).
func (c *scan) refine(block *[64]int16, table *huffman) bool {
	k := c.from
	for ; c.run == 0 && k <= c.to; k++ {
		code, ok := c.bits.symbol(table)
		if !ok {
			return false
		}
		zeros, size := int(code>>4), code&15
		fresh := int16(0)
		switch {
		case size > 1:
			return false
		case size == 1:
			fresh = int16(2*c.bits.take(1)-1) << c.low
		case zeros < 15:
			c.run = 1<<zeros + c.bits.take(zeros)
		}
		if c.run > 0 {
			break
		}
		for ; k <= c.to; k++ {
			if block[k] != 0 {
				c.deepen(&block[k])
			} else if zeros--; zeros < 0 {
				break
			}
		}
		if fresh != 0 {
			if k > c.to {
				return false
			}
			block[k] = fresh
		}
	}
	if c.run > 0 {
		for ; k <= c.to; k++ {
			if block[k] != 0 {
				c.deepen(&block[k])
			}
		}
		c.run--
	}
	return true
}

// deepen reads the next bit of a coefficient that is not zero.
func (c *scan) deepen(v *int16) {
	bit := int16(c.bits.take(1)) << c.low
	if *v < 0 {
		bit = -bit
	}
	*v += bit
}
