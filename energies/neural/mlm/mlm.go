package mlm

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/gradhop/gradhop/energies/neural"
	"github.com/gradhop/gradhop/energies/neural/internal/session"
	"github.com/gradhop/gradhop/onnx"
	"github.com/gradhop/gradhop/onnx/ort"
	"github.com/gradhop/gradhop/onnx/rewrite"
)

// Form is the energy made from a masked language model.
type Form string

// The forms; see the package documentation.
const (
	PLL    Form = "pll"
	PLLRaw Form = "pll-raw"
	MRF    Form = "mrf"
)

// MaskEmbedding is what the model sees at a masked blank.
type MaskEmbedding string

const (
	// MaskToken embeds the mask token, as the model was trained.
	MaskToken MaskEmbedding = "mask"
	// MaskZero puts a zero vector in place of the word embedding, as the DISCS
	// benchmark does by an out-of-range index.
	MaskZero MaskEmbedding = "zero"
)

// Gradient is how LogDensityGrad and LogDensityTilt get their gradient.
type Gradient string

const (
	// ExactGradient differentiates U.
	ExactGradient Gradient = "exact"
	// DirectGradient keeps the direct term only, which needs no backward pass: a
	// valid proposal for samplers that correct it, but not the gradient of U.
	DirectGradient Gradient = "direct"
)

// Options chooses the energy. Zero fields mean defaults.
type Options struct {
	Form          Form          // PLL
	MaskEmbedding MaskEmbedding // MaskToken
	Gradient      Gradient      // ExactGradient
	// MaskID is the id of the mask token.
	MaskID int32
	// Temperature divides U; 0 means 1.
	Temperature float64
	// MaxBatch bounds the sequences in one run of the model; less than 0 is no bound.
	// 0 is no bound on a GPU, and on CPU as many as keep the activations in cache (see
	// session.CacheTokens). A chain is never split, so m sequences is the least under the pll
	// forms. Results do not depend on it.
	MaxBatch int
	// Remember is the memory, in bytes, that each text may use to keep what the model
	// said of the states seen last; 0 means 64 MiB, less than 0 none. With a provider
	// other than cpu nothing is kept.
	Remember int64
	// Runtime says where and how the model runs.
	Runtime ort.Options
}

func (o *Options) defaults() error {
	if o.Form == "" {
		o.Form = PLL
	}
	if o.MaskEmbedding == "" {
		o.MaskEmbedding = MaskToken
	}
	if o.Gradient == "" {
		o.Gradient = ExactGradient
	}
	if o.Temperature == 0 {
		o.Temperature = 1
	}
	if o.Remember == 0 {
		o.Remember = 64 << 20
	}
	if !o.onCPU() {
		o.Remember = -1
	}
	switch {
	case o.Form != PLL && o.Form != PLLRaw && o.Form != MRF:
		return neural.BadOption("form", string(o.Form), "pll, pll-raw or mrf")
	case o.MaskEmbedding != MaskToken && o.MaskEmbedding != MaskZero:
		return neural.BadOption("mask embedding", string(o.MaskEmbedding), "mask or zero")
	case o.Gradient != ExactGradient && o.Gradient != DirectGradient:
		return neural.BadOption("gradient", string(o.Gradient), "exact or direct")
	case !(o.Temperature > 0):
		return neural.BadOption("temperature", fmt.Sprint(o.Temperature), "a number above zero")
	case o.MaskID < 0:
		return neural.BadOption("mask id", fmt.Sprint(o.MaskID), "a token id")
	}
	return nil
}

// onCPU reports whether the model runs on the processor, as far as is known before a
// session is opened.
func (o *Options) onCPU() bool { return o.Runtime.Provider == "" || o.Runtime.Provider == "cpu" }

// Model is a masked language model made ready to be an energy. Any number of texts
// share its sessions. It is safe for concurrent use.
type Model struct {
	opts  Options
	model *onnx.Model // simplified, float32
	part  parts
	vocab int
	// alone says that rows of a run are not computed apart; see session.MixesRows.
	alone bool
	// workers is the number of runs at once of graphs without a backward pass. On CPU one
	// thread for each run costs 30% less CPU time than all threads inside one run.
	workers int

	sequences atomic.Int64

	mu       sync.Mutex
	sessions map[product]*session.Session
}

// forward reports whether the graph of a product has no backward pass.
func (p product) forward() bool { return p == scoreOnly || p == conditional }

// product is what a rewritten graph returns.
type product int

const (
	scoreOnly   product = iota // per-site scores
	withGrad                   // and the gradient
	withTilt                   // and softmax of half the gradient
	conditional                // log-probabilities of one masked blank
)

// New prepares a model file in the layout of Hugging Face exports: integer
// inputs input_ids, attention_mask and optionally token_type_ids [batch, sequence],
// output logits [batch, sequence, vocabulary]. float16 weights are widened.
// m is not changed.
//
// Errors: *onnx.ArgumentError, *neural.ModelError for other inputs or outputs, *onnx errors.
func New(m *onnx.Model, o Options) (*Model, error) {
	if err := o.defaults(); err != nil {
		return nil, err
	}
	m = m.Clone()
	rewrite.Sort(m)
	if _, err := rewrite.WidenFloat16(m); err != nil {
		return nil, err
	}
	if err := rewrite.Upgrade(m, 18); err != nil {
		return nil, err
	}
	if err := checkInterface(m); err != nil {
		return nil, err
	}
	if err := rewrite.Simplify(m); err != nil {
		return nil, err
	}
	p, vocab, err := findParts(m)
	if err != nil {
		return nil, err
	}
	if int(o.MaskID) >= vocab {
		return nil, neural.BadOption("mask id", fmt.Sprint(o.MaskID), fmt.Sprintf("an id below the model's vocabulary of %d", vocab))
	}
	workers := 1
	if o.onCPU() {
		workers = cmp.Or(o.Runtime.Threads, runtime.NumCPU())
	}
	return &Model{opts: o, model: m, part: p, vocab: vocab, alone: session.MixesRows(m.Graph), workers: workers, sessions: map[product]*session.Session{}}, nil
}

// Vocabulary returns the number of words the model scores.
func (m *Model) Vocabulary() int { return m.vocab }

// Sequences returns the number of sequences that went through the model so far:
// under the pll forms one for each blank of a state, and none for a state that was
// remembered.
func (m *Model) Sequences() int64 { return m.sequences.Load() }

// Form returns the energy's form.
func (m *Model) Form() Form { return m.opts.Form }

// Temperature is what U is divided by.
func (m *Model) Temperature() float64 { return m.opts.Temperature }

// Close frees the runtime's sessions. Energies of m must not be used after it.
func (m *Model) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var first error
	for k, s := range m.sessions {
		if err := s.Close(); err != nil && first == nil {
			first = err
		}
		delete(m.sessions, k)
	}
	return first
}

// session opens the graph for a product on first use.
func (m *Model) session(ctx context.Context, p product) (*session.Session, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.sessions[p]; s != nil {
		return s, nil
	}
	g, err := m.rewrite(p)
	if err != nil {
		return nil, err
	}
	o := m.opts.Runtime
	if p.forward() && m.workers > 1 {
		o.Threads = 1
	}
	s, err := session.Open(ctx, g, o)
	if err != nil {
		return nil, err
	}
	m.sessions[p] = s
	return s, nil
}

// parallel calls run for the parts 0 to n-1 of a job, with the graph of a product, and
// returns the first error. Parts with the graph of a backward pass run one after the other.
func (m *Model) parallel(n int, p product, run func(part int) error) error {
	var g errgroup.Group
	g.SetLimit(1)
	if p.forward() {
		g.SetLimit(m.workers)
	}
	for part := range n {
		g.Go(func() error { return run(part) })
	}
	return g.Wait()
}

// textInputs are the model's own inputs for a run on n sequences of t tokens without
// padding. It counts them.
func (m *Model) textInputs(ids []int64, n, t int) map[string]*ort.Tensor {
	m.sequences.Add(int64(n))
	shape := []int64{int64(n), int64(t)}
	in := map[string]*ort.Tensor{}
	for _, v := range m.model.Graph.Inputs {
		fill := make([]int64, n*t)
		switch v.Name {
		case inIDs:
			fill = ids
		case inMask:
			for i := range fill {
				fill[i] = 1
			}
		}
		in[v.Name] = &ort.Tensor{Shape: shape, Data: fill}
		if v.Type.Elem == onnx.Int32 {
			narrow := make([]int32, len(fill))
			for i, x := range fill {
				narrow[i] = int32(x)
			}
			in[v.Name].Data = narrow
		}
	}
	return in
}
