package app

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

const barWidth = 24

// line formats a progress line of at most columns characters.
func line(label string, done, total int64, note string, columns int) string {
	var s strings.Builder
	s.WriteString(label)
	if total > 0 {
		full := int(min(done, total) * barWidth / total)
		fmt.Fprintf(&s, " [%s%s] %d%%", strings.Repeat("=", full), strings.Repeat(" ", barWidth-full), min(done, total)*100/total)
	}
	if note != "" {
		s.WriteString("  " + note)
	}
	if columns <= 1 {
		return s.String()
	}
	out := s.String()
	for utf8.RuneCountInString(out) >= columns { // a full line would wrap
		_, n := utf8.DecodeLastRuneInString(out)
		out = out[:len(out)-n]
	}
	return out
}
