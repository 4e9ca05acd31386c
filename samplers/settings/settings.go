// Package settings reads what users set as text: the options of samplers, by the tags of option structs, and schedules
// of numbers that change from step to step.
package settings

import (
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/agnivade/levenshtein"
)

// Flag describes one option of a sampler, read from a field of its option
// struct: `flag:"step-size" default:"0.4" choices:"a,b" doc:"..."`. Fields
// without a flag tag are for Go callers only. Fields are float64, int, bool or
// string. A missing setting gets the tag default if that is a value of the field, for a string
// one word; a default in several words, as "adapted in warm-up", leaves the zero value, with
// which the sampler chooses. Where zero is a setting of its own, the
// tag zero has the value that says so, as `zero:"-1"`. Without it the text 0 is an error,
// lest it pass for another number, unless the default begins with 0 itself, as in
// `default:"0: all"`. A field of type Settings with the tag `flag:"*"` receives the settings
// that no other field takes.
type Flag struct {
	Name    string   // as "step-size"
	Type    string   // "float64", "int", "bool" or "string"
	Default string   // in words where it depends on the energy
	Doc     string   // one line
	Choices []string // all values of a string option; nil where it is free
}

// Settings are options by flag name, as text.
type Settings map[string]string

// FlagsOf returns the flags of an option struct. It panics for a tag that is misspelt or has no meaning.
func FlagsOf[O any]() []Flag {
	var flags []Flag
	t := reflect.TypeFor[O]()
	for k := range t.NumField() {
		f := t.Field(k)
		if reason := badTag(f); reason != "" {
			panic(fmt.Sprintf("settings: field %s of %v: %s", f.Name, t, reason))
		}
		if f.Tag.Get("flag") == "" || f.Tag.Get("flag") == "*" {
			continue
		}
		var choices []string
		if c := f.Tag.Get("choices"); c != "" {
			choices = strings.Split(c, ",")
		}
		flags = append(flags, Flag{
			Name: f.Tag.Get("flag"), Type: f.Type.String(), Default: f.Tag.Get("default"), Doc: f.Tag.Get("doc"), Choices: choices,
		})
	}
	return flags
}

// tagPair is the first pair of a struct tag, tagKeys what may stand there.
var (
	tagPair = regexp.MustCompile(`^ *([^ ":]+):("(?:[^"\\]|\\.)*")`)
	tagKeys = []string{"flag", "default", "choices", "zero", "doc"}
)

// badTag says what is wrong with the tags of a field.
func badTag(f reflect.StructField) string {
	var keys []string
	for rest := string(f.Tag); rest != ""; {
		m := tagPair.FindStringSubmatch(rest)
		if m == nil {
			return fmt.Sprintf("the tag %s is not of the form key:\"value\"", rest)
		}
		if !slices.Contains(tagKeys, m[1]) {
			return fmt.Sprintf("unknown tag %s; the tags are %s", m[1], strings.Join(tagKeys, ", "))
		}
		keys, rest = append(keys, m[1]), rest[len(m[0]):]
	}
	if len(keys) > 0 && !slices.Contains(keys, "flag") {
		return "tags, but no flag"
	}
	if len(keys) == 0 || f.Tag.Get("flag") == "*" {
		return ""
	}
	value := f.Tag.Get("default")
	reason := set(reflect.New(f.Type).Elem(), f, value) // panics for a type that no setting has
	if reason == "" || strings.Contains(value, " ") || value == "none" {
		return ""
	}
	return fmt.Sprintf("default %q: %s", value, reason)
}

func fields(t reflect.Type) func(yield func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for k := range t.NumField() {
			if f := t.Field(k); f.Tag.Get("flag") != "" && !yield(f) {
				return
			}
		}
	}
}

// Decode writes the settings into the option struct that o points to. The error is an *OptionError.
func (s Settings) Decode(sampler string, o any) error {
	v := reflect.ValueOf(o).Elem()
	var known []string
	var rest Settings
	for f := range fields(v.Type()) {
		name := f.Tag.Get("flag")
		if name == "*" {
			rest = Settings{}
			v.FieldByIndex(f.Index).Set(reflect.ValueOf(rest))
			continue
		}
		known = append(known, name)
		text, ok := s[name]
		if !ok {
			if word := f.Tag.Get("default"); !strings.Contains(word, " ") && number(word) != 0 {
				set(v.FieldByIndex(f.Index), f, word) // words leave the zero value
			}
			continue
		}
		if reason := set(v.FieldByIndex(f.Index), f, text); reason != "" {
			return &OptionError{sampler, name, text, reason}
		}
	}
	for name := range s {
		switch {
		case slices.Contains(known, name):
		case rest != nil:
			rest[name] = s[name]
		default:
			return UnknownName(sampler, "option", name, known)
		}
	}
	return nil
}

// set parses text into a field, or says why it cannot.
func set(v reflect.Value, f reflect.StructField, text string) string {
	switch v.Kind() {
	case reflect.Float64:
		x, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return "not a number"
		}
		if z := f.Tag.Get("zero"); z != "" && x == number(z) {
			return "must not be negative"
		} else if x == 0 && z != "" {
			v.SetFloat(number(z))
			return ""
		}
		if x == 0 && number(f.Tag.Get("default")) != 0 {
			return notZero
		}
		v.SetFloat(x)
	case reflect.Int:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return "not an integer"
		}
		if z := f.Tag.Get("zero"); z != "" && float64(n) == number(z) {
			return "must not be negative"
		} else if n == 0 && z != "" {
			v.SetInt(int64(number(z)))
			return ""
		}
		if n == 0 && number(f.Tag.Get("default")) != 0 {
			return notZero
		}
		v.SetInt(n)
	case reflect.Bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return "not true or false"
		}
		v.SetBool(b)
	case reflect.String:
		if c := f.Tag.Get("choices"); c != "" && !slices.Contains(strings.Split(c, ","), text) {
			return "not one of " + strings.ReplaceAll(c, ",", ", ")
		}
		v.SetString(text)
	default:
		panic(fmt.Sprintf("settings: option %s has unsupported type %s", f.Name, f.Type))
	}
	return ""
}

// notZero is the reason for refusing a zero that would mean the default.
const notZero = "must be above zero; leave it out for the default"

// number is that which a tag begins with, or NaN.
func number(tag string) float64 {
	word, _, _ := strings.Cut(tag, " ")
	x, err := strconv.ParseFloat(strings.TrimSuffix(word, ":"), 64)
	if err != nil {
		return math.NaN()
	}
	return x
}

// OptionError reports a setting that cannot be used: an option of a sampler, a field of a
// Config, a schedule or an unknown name.
type OptionError struct {
	Sampler string // "" where the setting is of no one sampler
	Option  string
	Value   string // as given; "" where there is no one value
	Reason  string
}

func (e *OptionError) Error() string {
	msg := "samplers: "
	if e.Sampler != "" {
		msg += e.Sampler + ": "
	}
	msg += e.Option
	if e.Value != "" {
		msg += fmt.Sprintf(" %q", e.Value)
	}
	return msg + ": " + e.Reason
}

// UnknownName reports the name of something (what) that is not among the known ones, and the nearest
// of these; sampler is "" or the sampler that it is an option of.
func UnknownName(sampler, what, name string, known []string) *OptionError {
	slices.Sort(known)
	best, nearest := max(1, len(name)/3)+1, ""
	for _, k := range known {
		if d := levenshtein.ComputeDistance(strings.ToLower(name), k); d < best {
			best, nearest = d, k
		}
	}
	reason := "known are " + strings.Join(known, ", ")
	if len(known) == 0 {
		reason = "there are none"
	}
	if nearest != "" {
		reason = fmt.Sprintf("did you mean %q? (%s)", nearest, reason)
	}
	return &OptionError{sampler, "unknown " + what, name, reason}
}
