package prompttune

import (
	"math"
	"os"
	"strconv"
	"strings"
)

// imageSet is a folder of pictures, or a single picture, that prompts are to be near to,
// or far from where its weight is negative. The weight is spread evenly over the
// pictures.
type imageSet struct {
	Path   string
	Weight float64
}

// textTarget is a text that prompts are to be near to, or far from.
type textTarget struct {
	Text   string
	Weight float64
}

// parseImageSet reads PATH or PATH:WEIGHT. A path that is there as it stands is never cut.
func parseImageSet(arg string) (imageSet, error) {
	if _, err := os.Stat(arg); err == nil {
		return imageSet{arg, 1}, nil
	}
	path, weight, err := weighted(arg)
	return imageSet{path, weight}, err
}

// parseTextTarget reads TEXT or TEXT:WEIGHT. A text that ends in a colon and a number
// needs a weight behind it.
func parseTextTarget(arg string) (textTarget, error) {
	text, weight, err := weighted(arg)
	return textTarget{strings.TrimSpace(text), weight}, err
}

// weighted cuts ":number" off the end. A weight is finite and not zero; it is 1 where none
// is given.
func weighted(arg string) (string, float64, error) {
	name, weight := arg, 1.0
	if i := strings.LastIndexByte(arg, ':'); i >= 0 {
		if w, err := strconv.ParseFloat(arg[i+1:], 64); err == nil {
			name, weight = arg[:i], w
		}
	}
	switch {
	case strings.TrimSpace(name) == "":
		return "", 0, badInput("target "+strconv.Quote(arg), "empty")
	case weight == 0 || math.IsNaN(weight) || math.IsInf(weight, 0):
		return "", 0, badInput("target "+strconv.Quote(arg), "weight %g; want a number other than zero", weight)
	}
	return name, weight, nil
}

// targetSet are unit vectors with weights: what U(x) = Σ_j ω_j cos(t(x), v_j) is made of.
type targetSet struct {
	Vectors [][]float32 // [target, width]
	Weights []float64   // [target]
}

// Images adds the vectors of a set's pictures, with the set's weight spread evenly.
func (t *targetSet) Images(vectors [][]float32, weight float64) {
	for _, v := range vectors {
		t.Vectors = append(t.Vectors, v)
		t.Weights = append(t.Weights, weight/float64(len(vectors)))
	}
}

// Text adds the vector of a text.
func (t *targetSet) Text(vector []float32, weight float64) {
	t.Vectors, t.Weights = append(t.Vectors, vector), append(t.Weights, weight)
}

// Normalize divides the weights by the sum of their absolute values, so that U is a weighted
// mean of cosines, and an inverse temperature means the same for any number of targets.
func (t *targetSet) Normalize() {
	sum := 0.0
	for _, w := range t.Weights {
		sum += math.Abs(w)
	}
	for j := range t.Weights {
		t.Weights[j] /= sum
	}
}

// check returns an *onnx.ArgumentError if there is nothing to come near to.
func (t *targetSet) check() error {
	if len(t.Vectors) == 0 {
		return badInput("targets", "none; images or a text are needed")
	}
	for _, w := range t.Weights {
		if w > 0 {
			return nil
		}
	}
	return badInput("targets", "every weight is negative; at least one must be positive")
}

// score returns Σ_j ω_j cos(v, v_j) for a vector v of any length but zero.
func (t *targetSet) score(v []float32) float64 {
	norm, sum := 0.0, 0.0
	for _, x := range v {
		norm += float64(x) * float64(x)
	}
	for j, target := range t.Vectors {
		dot := 0.0
		for k, x := range target {
			dot += float64(v[k]) * float64(x)
		}
		sum += t.Weights[j] * dot
	}
	return sum / math.Sqrt(norm)
}
