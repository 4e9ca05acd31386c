package mlm_test

import (
	"context"
	"fmt"
	"log"

	"github.com/gradhop/gradhop/energies/neural/mlm"
	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/samplers"
)

// From a masked language model's file to draws of two blanks.
func Example() {
	file, err := onnx.Load("testdata/bert/legacy-14/model.onnx")
	if err != nil {
		log.Fatal(err)
	}
	model, err := mlm.New(file, mlm.Options{MaskID: 4})
	if err != nil {
		log.Fatal(err)
	}
	defer model.Close()
	energy, err := model.Infill(mlm.Text{IDs: []int32{2, 20, 4, 33, 41, 4, 27, 3}, Blanks: []int{2, 5}})
	if err != nil {
		log.Fatal(err)
	}
	kernel, err := samplers.NewDMALA(energy, samplers.DMALAOptions{})
	if err != nil {
		log.Fatal(err)
	}
	var draws samplers.Recorder
	result, err := samplers.Run(context.Background(), samplers.Config{Kernel: kernel, Chains: 4, Warmup: 20, Steps: 50,
		Seed: 1, Observers: []samplers.Observer{&draws}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(draws.Draws(), "draws of", draws.Chains, "chains at", draws.Sites, "blanks")
	fmt.Println(result.State.Evaluations.Gradient, "evaluations of the gradient")
	// Output:
	// 50 draws of 4 chains at 2 blanks
	// 284 evaluations of the gradient
}
