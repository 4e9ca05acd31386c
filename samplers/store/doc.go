// Package store keeps the draws of a run in a folder that other tools open, and
// that survives a crash.
//
// # The folder
//
//	run/
//	  gradhop.json   what the run is: settings, space, seed, model, versions, chains
//	  draws.zarr/    draws and statistics, in the layout of ArviZ's InferenceData
//	  checkpoint     what is needed to go on
//	  summary.json   diagnostics and totals, once WriteSummary was called
//	  lock           held while a process writes
//
// draws.zarr is Zarr version 2 with consolidated metadata; arviz.from_zarr and
// xarray.open_zarr read it. Its groups are
//
//	posterior             x [chain, draw, site]
//	sample_stats          lp, acceptance_rate, n_hops, step_size, weight [chain, draw]
//	warmup_sample_stats   the same of warm-up, where there is one
//	warmup_posterior      x of warm-up, with Header.SaveWarmup
//
// x holds what codes stand for, in the narrowest integer type: 0 and 1 in a
// binary space, -1 and +1 in a spin space, the number itself in an ordinal space
// and the code in a categorical one. lp is U in nats. Statistics are of the step
// that led to the draw; step_size is absent where the sampler has none. weight is
// that of the draw in estimates of expectations, Σ w·f(x) / Σ w, for samplers whose draws
// have weights, as sgdld; elsewhere it is absent, and draws count the same. Other tools
// average x without it. Warm-up is thinned like the rest.
//
// A chunk holds draws of one chain: about 64 KiB of x, or 2048 draws of a
// statistic, compressed by zlib at level 1; what lies beyond the last draw is
// zero. Neither the bytes of a chunk nor the metadata depend on time, on how
// often a run was stopped, or on the other chains. So a run that was stopped and
// resumed has the same bytes in draws.zarr as one that never was, and [Merge]
// joins runs of different chains by copying files.
//
// # Writing
//
// A [Writer] is a samplers.Observer. It copies each draw into a queue of bounded
// size; a goroutine encodes, compresses and writes. Memory is in proportion to
// chains times the size of a chunk, whatever the length of the run. An error of
// the disk is returned by the next call of Observe and ends the run.
//
// Every half minute, and on Close, the Writer makes a checkpoint: it writes the
// chunks that are not full, then the metadata whose shape tells readers how many
// draws there are, then the checkpoint itself; each file is complete under a
// temporary name before it gets its own. A process killed at any moment loses
// what came after the last checkpoint and nothing else: [Resume] cuts the folder
// back to it, and the same draws are made again.
//
// # Reading
//
// A [Reader] iterates over draws chain by chain with the memory of one chunk,
// also while the run goes on; [Reader.Replay] shows them to an observer step by step, so
// that what it made of a run can be made again when the run goes on. [Diagnose] makes the table of diagnostics,
// [Reader.WriteCSV] writes the files that CmdStan would have, [Reader.WriteNPZ]
// NumPy's, and [Reader.WritePNG] the last draws as pictures.
package store
