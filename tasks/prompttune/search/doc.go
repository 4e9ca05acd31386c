// Package search has the optimisers of prompts. [Optimisers] lists them and [Lookup] finds one, or a sampler,
// by name. Each is a [samplers.Kernel], so that the loop, the folder of a run and resuming
// are those of samplers; none draws from exp(βU).
package search
