package ort

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	ort "github.com/yalue/onnxruntime_go"
)

// A provider is an execution provider. To add one, write a type with these two
// methods and a case in parseProvider.
type provider interface {
	// name is what the user calls it, for instance "cuda:0".
	name() string
	// configure adds it to the options of a session. It fails when the library
	// or the machine does not have it.
	configure(*ort.SessionOptions) error
}

// parseProvider turns [Options.Provider] into the providers to try, in order.
// Only the error of the last one is reported.
func parseProvider(s string) ([]provider, error) {
	kind, device, hasDevice := strings.Cut(s, ":")
	switch {
	case s == "" || s == "cpu":
		return []provider{cpu{}}, nil
	case s == "auto":
		return []provider{cuda{}, cpu{}}, nil
	case kind == "cuda" && !hasDevice:
		return []provider{cuda{}}, nil
	case kind == "cuda":
		if n, err := strconv.ParseUint(device, 10, 8); err == nil {
			return []provider{cuda{device: int(n)}}, nil
		}
	}
	return nil, badArgument("Provider", s, "cpu, cuda, cuda:N or auto")
}

// kind is the name of a provider without its device: the runtime's errors
// contain it.
func kind(p provider) string {
	k, _, _ := strings.Cut(p.name(), ":")
	return k
}

// cpu is always available; the runtime adds it by itself.
type cpu struct{}

func (cpu) name() string                        { return "cpu" }
func (cpu) configure(*ort.SessionOptions) error { return nil }

// cuda runs on one NVIDIA device. Operators that it lacks run on the CPU, in the
// same session.
type cuda struct{ device int }

func (c cuda) name() string { return fmt.Sprintf("cuda:%d", c.device) }

func (c cuda) configure(o *ort.SessionOptions) error {
	if !slices.Contains(Providers(), "CUDAExecutionProvider") {
		return errors.New("the library is built without CUDA")
	}
	opts, err := ort.NewCUDAProviderOptions()
	if err != nil {
		return err
	}
	defer opts.Destroy()
	if err := opts.Update(map[string]string{"device_id": strconv.Itoa(c.device)}); err != nil {
		return err
	}
	return o.AppendExecutionProviderCUDA(opts)
}
