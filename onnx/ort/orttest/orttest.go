// Package orttest finds what tests need of execution providers.
package orttest

import (
	"os"
	"testing"

	"github.com/gradhop/gradhop/onnx/ort/library"
)

// OpenVINO skips a test where the OpenVINO plug-in is not in the cache; it never fetches the 50
// MB. Where GRADHOP_TEST_OPENVINO is set, as after "gradhop doctor --fetch --provider openvino",
// the test fails instead.
func OpenVINO(t testing.TB) {
	t.Helper()
	_, err := library.FindOpenVINO(t.Context(), library.Options{NoFetch: true})
	switch {
	case err == nil:
	case os.Getenv("GRADHOP_TEST_OPENVINO") != "":
		t.Fatal(err)
	default:
		t.Skip(err)
	}
}
