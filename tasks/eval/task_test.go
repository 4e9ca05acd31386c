package eval

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/gradhop/gradhop/tasks/textmetrics"
)

// TestRemoveOriginals checks that a task's sentence is known by its words although task
// files spell some of them differently.
func TestRemoveOriginals(t *testing.T) {
	items := []Item{{Original: "After UB - 8 , was  Sold"}, {Original: " he said ,  no . "}}
	refs := []textmetrics.Refs{
		{Name: "a", Sentences: [][]string{strings.Fields("after ub @-@ 8 , was sold"), strings.Fields("after ub - 9 , was sold")}},
		{Name: "b", Sentences: [][]string{strings.Fields(`he said , " no . "`), {"x"}, strings.Fields("he said , no .")}},
	}
	left, removed, err := RemoveOriginals(refs, items)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(removed, []int{1, 2}) || len(left[0].Sentences) != 1 || left[0].Sentences[0][3] != "9" || left[1].Sentences[0][0] != "x" {
		t.Errorf("removed %v, left %v", removed, left)
	}
	if len(refs[0].Sentences) != 2 {
		t.Error("the argument was changed")
	}
}

// FuzzTask checks that a task file is refused with an error, or comes out with as many
// positions as blanks, whatever is in it.
func FuzzTask(f *testing.F) {
	for _, s := range []string{
		`[{"gt_sentence": "a", "sentence": "[MASK]", "infill_pos": [1]}]`, `[]`, `{}`, `[{}]`, `[null]`, "[\n1]", "\xff", `null`, ``,
		`[{"gt_sentence": 1, "sentence": "[MASK]", "infill_pos": [1.5]}]`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		items, err := parseTask(data)
		if err != nil {
			if err.Error() == "" || err.Err == nil {
				t.Errorf("an error that says nothing: %#v", err)
			}
			return
		}
		if !json.Valid(data) || len(items) == 0 {
			t.Errorf("%q was accepted", data)
		}
		for _, it := range items {
			if n := strings.Count(it.Sentence, maskWord); n == 0 || n != len(it.Positions) {
				t.Errorf("%+v was accepted", it)
			}
		}
	})
}
