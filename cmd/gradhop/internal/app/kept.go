package app

import (
	"errors"
	"slices"

	"github.com/gradhop/gradhop/tasks/infill"
)

// kept holds open models, the last used at the end. Commands use it one after another.
type kept struct {
	keys   []string
	models map[string]*infill.Model
}

// mostKept is the number of models that stay open.
const mostKept = 2

// KeepModels makes the commands of a's children share the models that they open, until CloseModels.
func (a *App) KeepModels() { a.models = &kept{models: map[string]*infill.Model{}} }

// CloseModels closes the models of KeepModels.
func (a *App) CloseModels() error {
	var errs []error
	for _, m := range a.models.models {
		errs = append(errs, m.Close())
	}
	a.models = nil
	return errors.Join(errs...)
}

// get returns the model of a key, or nil.
func (k *kept) get(key string) *infill.Model {
	if k == nil || k.models[key] == nil {
		return nil
	}
	k.keys = append(slices.DeleteFunc(k.keys, func(s string) bool { return s == key }), key)
	return k.models[key]
}

// put adds a model and closes those used least recently beyond mostKept. The error is that of closing.
func (k *kept) put(key string, m *infill.Model) (err error) {
	k.keys, k.models[key] = append(k.keys, key), m
	for len(k.keys) > mostKept {
		old := k.keys[0]
		err = errors.Join(err, k.models[old].Close())
		delete(k.models, old)
		k.keys = k.keys[1:]
	}
	return err
}
