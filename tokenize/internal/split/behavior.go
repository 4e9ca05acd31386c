package split

import (
	"github.com/gradhop/gradhop/tokenize/internal/aligned"
	"github.com/gradhop/gradhop/tokenize/internal/files"
)

// Behavior says what happens to a delimiter. The examples split "the-final--countdown" at "-".
type Behavior string

const (
	Removed            Behavior = "Removed"            // the, final, countdown
	Isolated           Behavior = "Isolated"           // the, -, final, -, -, countdown
	MergedWithPrevious Behavior = "MergedWithPrevious" // the-, final-, -, countdown
	MergedWithNext     Behavior = "MergedWithNext"     // the, -final, -, -countdown
	Contiguous         Behavior = "Contiguous"         // the, -, final, --, countdown
)

func (b Behavior) check() error {
	switch b {
	case Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous:
		return nil
	}
	return files.Unsupported("Split with behavior %q", string(b))
}

// cut splits text at the delimiters found or, if inverted, at the text between them.
func cut(text []aligned.Char, found [][2]int, invert bool, b Behavior) (out [][]aligned.Char) {
	type part struct {
		start, end int
		delimiter  bool
	}
	var parts []part
	last := 0
	for _, m := range found {
		if last < m[0] {
			parts = append(parts, part{last, m[0], invert})
		}
		parts = append(parts, part{m[0], m[1], !invert})
		last = m[1]
	}
	if last < len(text) {
		parts = append(parts, part{last, len(text), invert})
	}
	for i := 0; i < len(parts); i++ {
		if b == Removed && parts[i].delimiter {
			continue
		}
		start := parts[i].start
		for i+1 < len(parts) && b.joins(parts[i].delimiter, parts[i+1].delimiter) {
			i++
		}
		out = append(out, text[start:parts[i].end])
	}
	return out
}

// joins reports whether two neighbours stay together; left and right say which are delimiters.
func (b Behavior) joins(left, right bool) bool {
	switch b {
	case MergedWithPrevious:
		return right && !left
	case MergedWithNext:
		return left && !right
	case Contiguous:
		return left == right
	}
	return false
}
