package settings

import (
	"reflect"
	"strings"
	"testing"
)

func TestBadTag(t *testing.T) {
	if got := badTag(reflect.StructField{Name: "A", Tag: `flag:"a" doc: "a"`}); !strings.Contains(got, "not of the form") {
		t.Errorf("a tag of bad form: %q", got)
	}
}
