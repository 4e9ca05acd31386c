package eval

import (
	"strings"

	"github.com/gradhop/gradhop/tasks/textmetrics"
)

// RemoveOriginals returns refs without the task's own sentences, and the number removed from each set.
// If they remained, the metrics would mostly measure the words around the blanks. The error is
// textmetrics.ErrEmpty if a set has no other sentence.
func RemoveOriginals(refs []textmetrics.Refs, items []Item) (left []textmetrics.Refs, removed []int, err error) {
	own := map[string]bool{}
	for _, it := range items {
		own[identity(strings.Fields(strings.ToLower(it.Original)))] = true
	}
	for _, r := range refs {
		var keep [][]string
		for _, s := range r.Sentences {
			if !own[identity(s)] {
				keep = append(keep, s)
			}
		}
		if len(keep) == 0 {
			return nil, nil, textmetrics.ErrEmpty
		}
		removed = append(removed, len(r.Sentences)-len(keep))
		left = append(left, textmetrics.Refs{Name: r.Name, Sentences: keep})
	}
	return left, removed, nil
}

// identity returns a key shared by a sentence and its copy in a reference file: task files write @-@ as
// - and drop quotation marks.
func identity(sentence []string) string {
	var b strings.Builder
	for _, w := range sentence {
		switch w {
		case `"`, "``", "''":
			continue
		case "@-@", "@,@", "@.@":
			w = w[1:2]
		}
		b.WriteString(w + " ")
	}
	return b.String()
}
