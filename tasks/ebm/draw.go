package ebm

import (
	"context"
	"image"
	"image/gif"
	"io"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/energies/independent"
	"github.com/gradhop/gradhop/samplers"
)

// DrawSettings describe chains whose last states are drawn as pictures.
type DrawSettings struct {
	// Chains is the number of chains, Steps that of their steps.
	Chains, Steps int
	// Sampler is the kernel, "" for dmala; Options are its settings.
	Sampler string
	Options samplers.Settings
	// Start holds the initial states, [chain, site]. Where it is nil, they are drawn from
	// independent sites with the probabilities Base, [site, value]; nil is uniform.
	Start []int32
	Base  []float64
	// Frames is the number of states to show on the way, evenly spaced; 0 shows none.
	Frames int
	Seed   uint64
}

// Draw runs chains on e and returns their last states, and the frames, [frame][chain,
// site], the last states included. Errors are *onnx.ArgumentError or those of samplers.
func Draw(ctx context.Context, e energies.Energy, s DrawSettings) (last energies.Batch, frames [][]int32, err error) {
	if s.Chains < 1 || s.Steps < 1 || s.Frames < 0 || s.Frames > s.Steps {
		return last, nil, inputError("%d chains, %d steps and %d frames: chains and steps must be at least 1, frames at most the steps", s.Chains, s.Steps, s.Frames)
	}
	if s.Sampler == "" {
		s.Sampler = "dmala"
	}
	kernel, err := samplers.New(s.Sampler, e, s.Options)
	if err != nil {
		return last, nil, err
	}
	if s.Start == nil {
		base, err := independent.New(*e.Space(), s.Base)
		if err != nil {
			return last, nil, err
		}
		s.Start = drawBase(base, s.Chains, s.Seed)
	}
	config := samplers.Config{Kernel: kernel, Chains: s.Chains, Init: s.Start, Steps: s.Steps, Seed: s.Seed}
	if s.Frames > 0 {
		config.Observers = append(config.Observers, samplers.ObserverFunc(func(st *samplers.State, _ *samplers.Info) error {
			if next := len(frames) + 1; int(st.Step) >= next*s.Steps/s.Frames {
				frames = append(frames, st.X.Clone().Codes)
			}
			return nil
		}))
	}
	run, err := samplers.Run(ctx, config)
	if run == nil {
		return last, nil, err
	}
	return run.State.X, frames, err
}

// WriteGIF writes pictures as an animation, each shown for a tenth of a second and the
// last one for two seconds.
func WriteGIF(w io.Writer, frames []*image.Paletted) error {
	g := &gif.GIF{Image: frames}
	for k := range frames {
		delay := 10
		if k == len(frames)-1 {
			delay = 200
		}
		g.Delay = append(g.Delay, delay)
	}
	return gif.EncodeAll(w, g)
}
