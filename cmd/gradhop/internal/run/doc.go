// Package run holds the flags and records that several commands share.
package run

import (
	"maps"

	"github.com/gradhop/gradhop/models"
	"github.com/gradhop/gradhop/samplers"
	"github.com/gradhop/gradhop/samplers/diag"
)

// Number is null in JSON and NA in text where it is not finite.
type Number = diag.Number

// NaN is a number that is not defined.
var NaN = diag.NA

// ModelID names a model.
type ModelID struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
}

// Identify returns the names of a model.
func Identify(m models.Model) ModelID { return ModelID{Name: m.Name, SHA256: m.SHA256} }

// Options returns the options of a registered sampler with defaults written out.
func Options(r samplers.Registration, given samplers.Settings) map[string]string {
	all := map[string]string{}
	for _, f := range r.Flags {
		all[f.Name] = f.Default
	}
	maps.Copy(all, given)
	return all
}

// NotExact says that a sampler does not target exp(U); it is "" for one that does.
func NotExact(r samplers.Registration) string {
	if r.Exact {
		return ""
	}
	return r.Name + " does not leave exp(U) invariant: its draws follow another distribution"
}
