package page

import (
	"cmp"
	"context"
	"html/template"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gradhop/gradhop/tasks/prompttune"
)

// Limits of what is shown beside a result: pictures at either end, texts, and results with
// pictures, after which pictures are only named.
const (
	mostEnd   = 3
	mostTexts = 10
	mostCards = 20
)

// card is a result with the targets that it is near to and far from.
type card struct {
	Rank   int
	Result shown
	Groups []group
	Texts  []textCosine
	More   int // texts that are not shown
}

// group are pictures under one heading.
type group struct {
	Label string
	Away  bool // of sets with a negative weight
	Items []neighbour
}

type neighbour struct {
	File, Name, Cosine string
	Src                template.URL
}

type textCosine struct {
	Text, Cosine string
	Away         bool
}

// target is a term of U with its cosine.
type target struct {
	file   string
	cosine float64
}

// cards compares each result with all targets.
func (p *Page) cards(ctx context.Context, r *prompttune.Task, d *prompttune.Document) ([]card, error) {
	ids := make([][]int32, len(d.Results))
	for i, x := range d.Results {
		ids[i] = x.IDs
	}
	cosines, err := r.Problem.Cosines(ctx, ids)
	if err != nil {
		return nil, err
	}
	out := make([]card, len(ids))
	var files []string
	for i := range out {
		out[i] = card{Rank: i + 1, Result: show(d.Results[i])}
		out[i].compare(cosines[i], r, d)
		if i < mostCards {
			for _, g := range out[i].Groups {
				for _, n := range g.Items {
					files = append(files, n.File)
				}
			}
		}
	}
	// Most are there already; a set that is not shown whole may lack some.
	if err := p.read(ctx, files); err != nil {
		return nil, err
	}
	for i := range out[:min(len(out), mostCards)] {
		for _, g := range out[i].Groups {
			for k := range g.Items {
				g.Items[k].Src = p.thumbs[g.Items[k].File]
			}
		}
	}
	for i := range out { // names were needed as they are up to here
		for _, g := range out[i].Groups {
			for k := range g.Items {
				g.Items[k].File = clean(g.Items[k].File)
			}
		}
	}
	return out, nil
}

// compare fills a card. cosines are those with pictures, set after set, and then with
// texts.
func (c *card) compare(cosines []float64, r *prompttune.Task, d *prompttune.Document) {
	var near, away []target
	for k, set := range d.Images {
		for _, f := range r.Files()[k] {
			t := target{f, cosines[0]}
			cosines = cosines[1:]
			if set.Weight > 0 {
				near = append(near, t)
			} else {
				away = append(away, t)
			}
		}
	}
	c.Groups = append(ends(near, false), ends(away, true)...)
	order := make([]int, len(d.Texts))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(cosines[j], cosines[i]) })
	for _, i := range order[:min(len(order), mostTexts)] {
		c.Texts = append(c.Texts, textCosine{clean(d.Texts[i].Text), decimals(cosines[i]), d.Texts[i].Weight < 0})
	}
	c.More = len(order) - len(c.Texts)
}

// ends returns the targets at both ends, or all where they are few. No picture is at both.
func ends(list []target, away bool) []group {
	if len(list) == 0 {
		return nil
	}
	slices.SortStableFunc(list, func(a, b target) int { return cmp.Compare(b.cosine, a.cosine) })
	first, last := list[:min(len(list), mostEnd)], list[max(len(list)-mostEnd, min(len(list), mostEnd)):]
	slices.Reverse(last) // the farthest first
	suffix := ""
	if away {
		suffix = " of those to keep away from"
	}
	if len(last) == 0 {
		if away {
			return []group{{"Pictures to keep away from", away, neighbours(first)}}
		}
		return []group{{"Pictures", away, neighbours(first)}}
	}
	return []group{{"Nearest" + suffix, away, neighbours(first)}, {"Farthest" + suffix, away, neighbours(last)}}
}

func neighbours(list []target) []neighbour {
	out := make([]neighbour, len(list))
	for i, t := range list {
		out[i] = neighbour{File: t.file, Name: clean(filepath.Base(t.file)), Cosine: decimals(t.cosine)}
	}
	return out
}

// clean makes text of bytes that need not be any, for a page in UTF-8: what has no place
// in HTML becomes a mark that shows.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' && r != '\n' || r >= 0x7f && r < 0xa0 {
			return '\ufffd'
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
}
