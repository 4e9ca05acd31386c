package known

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/energies/graph"
	"github.com/gradhop/gradhop/energies/table"
)

// definitions computes U of small energies from their definitions, with plain loops over pairs.
func definitions(t *testing.T) map[string]func(s []int) float64 {
	t.Helper()
	file := filepath.Join(t.TempDir(), "graph.txt")
	text := "# five sites, a triangle with a tail\n0 1 0.5\n1 2 -1\n2 0 2\n2 3\n3 4 0.25\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	weights := map[[2]int]float64{{0, 1}: 0.5, {1, 2}: -1, {0, 2}: 2, {2, 3}: 1, {3, 4}: 0.25}
	pairs := func(w map[[2]int]float64, f func(i, j int) float64) float64 {
		sum := 0.0
		for p, weight := range w {
			sum += weight * f(p[0], p[1])
		}
		return sum
	}
	torus := map[[2]int]float64{} // 3 x 3
	for i := range 9 {
		r, c := i/3, i%3
		torus[[2]int{i, r*3 + (c+1)%3}], torus[[2]int{i, (r+1)%3*3 + c}] = 1, 1
	}
	hmm := simulateHMM(3, 2, 4)
	machine, err := randomMachine(&part{dims: []int{4, 3}, numbers: []float64{2}})
	if err != nil {
		t.Fatal(err)
	}
	weight, bias, hidden := machine.Weights()
	return map[string]func(s []int) float64{
		"ising:3x3,0.3,0.2": func(s []int) float64 {
			u := 0.3 * pairs(torus, func(i, j int) float64 { return float64(s[i] * s[j]) })
			for _, v := range s {
				u += 0.2 * float64(v)
			}
			return u
		},
		"ising:" + file + ",0.7": func(s []int) float64 {
			return 0.7 * pairs(weights, func(i, j int) float64 { return float64(s[i] * s[j]) })
		},
		"potts:" + file + ",3,0.5": func(s []int) float64 {
			return 0.5 * pairs(weights, func(i, j int) float64 { return agree(s[i] == s[j]) })
		},
		"maxcut:" + file + ",1.5": func(s []int) float64 {
			return 1.5 * pairs(weights, func(i, j int) float64 { return agree(s[i] != s[j]) })
		},
		"mis:" + file + ",2,1.25": func(s []int) float64 {
			u := 0.0
			for _, v := range s {
				u += 2 * float64(v)
			}
			for p := range weights {
				u -= 2.5 * float64(s[p[0]]*s[p[1]])
			}
			return u
		},
		"gaussian-bernoulli:4": func(s []int) float64 {
			u := 0.0
			for i := range 4 {
				for j := range 4 {
					w := 0.5 * (1 + agree(i == j))
					u += w * float64(s[i]) * (float64(s[j]) - 1) / 2
				}
			}
			return u
		},
		"rbm-joint:4x3,2": func(s []int) float64 {
			u := 0.0
			for i := range 4 {
				u += bias[i] * float64(s[i])
			}
			for k := range 3 {
				u += hidden[k] * float64(s[4+k])
				for i := range 4 {
					u += weight[4*k+i] * float64(s[i]*s[4+k])
				}
			}
			return u
		},
		"fhmm:3x2,4": func(s []int) float64 {
			u := 0.0
			for time, y := range hmm.Observed {
				mean := hmm.Bias
				for k, w := range hmm.Emission {
					x := s[2*time+k]
					mean += w * float64(x)
					switch {
					case time == 0 && x == 1:
						u += math.Log(hmm.Start)
					case time == 0:
						u += math.Log(1 - hmm.Start)
					case x == s[2*(time-1)+k]:
						u += math.Log(hmm.Stay)
					default:
						u += math.Log(1 - hmm.Stay)
					}
				}
				z := (y - mean) / hmm.Noise
				u += -z*z/2 - math.Log(hmm.Noise) - math.Log(2*math.Pi)/2
			}
			return u
		},
	}
}

func agree(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// TestAgainstDefinitions compares U of every state with the definition; gradients and
// conditionals, of one site and of whole colours, with differences of U; and colours with the
// differences that sites of one colour make to each other.
func TestAgainstDefinitions(t *testing.T) {
	for text, define := range definitions(t) {
		e, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		all, err := table.Enumerate(context.Background(), e)
		if err != nil {
			t.Fatal(err)
		}
		sp := e.Space()
		s := make([]int, sp.Sites)
		for k, u := range all.U {
			for i, v := range all.X.Chain(k) {
				s[i] = sp.Number(v)
			}
			if want := define(s); math.Abs(u-want) > 1e-10 {
				t.Fatalf("%s, state %v: U = %v, want %v", text, s, u, want)
			}
		}
		checkChanges(t, text, e, all)
	}
}

// TestOthers checks changes of energies that have no definition above, on small sizes.
func TestOthers(t *testing.T) {
	for _, text := range []string{"bernoulli:5,0.2", "categorical:3x4", "rbm:6x4,1", "logistic:6x20,1", "quenched:4x50,1"} {
		e, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		all, err := table.Enumerate(context.Background(), e)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(text, "rbm") || strings.HasPrefix(text, "logistic") {
			checkSlope(t, text, e, all)
		} else {
			checkChanges(t, text, e, all)
		}
	}
}

// checkChanges: gradients and conditionals are the differences of U.
func checkChanges(t *testing.T, text string, e energies.Energy, all *table.Enumeration) {
	t.Helper()
	sp, n := e.Space(), all.Len()
	s := sp.Values
	slopes, err := energies.As[energies.Differentiable]("", e)
	if err != nil {
		t.Fatal(err)
	}
	conditional, _ := energies.As[energies.Conditional]("", e)
	coloured, _ := energies.As[energies.Coloured]("", e)
	var lists [][]int32
	if coloured != nil {
		lists = coloured.Colours()
	}
	colours := lists
	change := func(k, i int, v int32) float64 {
		x := append([]int32(nil), all.X.Chain(k)...)
		x[i] = v
		return all.U[all.Find(x)] - all.U[k]
	}
	u, g := make([]float64, n), make([]float32, n*sp.Sites*s)
	if err := slopes.LogDensityGrad(context.Background(), u, g, all.X); err != nil {
		t.Fatal(err)
	}
	for i := range int32(sp.Sites) {
		lists = append(lists, []int32{i})
	}
	for at, sites := range lists {
		logp, err := make([]float64, n*len(sites)*s), error(nil)
		if at < len(colours) {
			err = coloured.LogConditionals(context.Background(), logp, sites, all.X)
		} else if conditional != nil {
			err = conditional.LogConditional(context.Background(), logp, int(sites[0]), all.X)
		}
		if err != nil {
			t.Fatal(err)
		}
		for k := range n {
			for m, i := range sites {
				cur := all.X.Chain(k)[i]
				for v := range int32(s) {
					want, row := change(k, int(i), v), (k*sp.Sites+int(i))*s
					if d := float64(g[row+int(v)]) - float64(g[row+int(cur)]); math.Abs(d-want) > 1e-5 {
						t.Fatalf("%s, state %v, site %d, value %d: gradient %v, want %v", text, all.X.Chain(k), i, v, d, want)
					}
					lp := (k*len(sites) + m) * s
					if d := logp[lp+int(v)] - logp[lp+int(cur)]; conditional != nil && math.Abs(d-want) > 1e-10 {
						t.Fatalf("%s, state %v, site %d of %v, value %d: conditional %v, want %v", text, all.X.Chain(k), i, sites, v, d, want)
					}
				}
			}
		}
	}
	for _, sites := range colours { // no two of a colour interact
		for _, i := range sites {
			for _, j := range sites {
				if i == j {
					continue
				}
				x := append([]int32(nil), all.X.Chain(0)...)
				x[j] = 1
				if d := change(all.Find(x), int(i), 1) - change(0, int(i), 1); math.Abs(d) > 1e-10 {
					t.Fatalf("%s: sites %d and %d of one colour interact by %v", text, i, j, d)
				}
			}
		}
	}
}

// checkSlope: U and its gradient by their definitions at real states, by finite differences of
// a sum of softplus, which both energies are.
func checkSlope(t *testing.T, text string, e energies.Energy, all *table.Enumeration) {
	t.Helper()
	sp, n := e.Space(), all.Len()
	u, g := make([]float64, n), make([]float32, 2*n*sp.Sites)
	slopes, err := energies.As[energies.Differentiable]("", e)
	if err == nil {
		err = slopes.LogDensityGrad(context.Background(), u, g, all.X)
	}
	if err != nil {
		t.Fatal(err)
	}
	value := relaxed(e.(*Named).Energy)
	z := make([]float64, sp.Sites)
	for k := range n {
		for i, v := range all.X.Chain(k) {
			z[i] = float64(v)
		}
		if want := value(z); math.Abs(u[k]-want) > 1e-9 || math.Abs(all.U[k]-want) > 1e-9 {
			t.Fatalf("%s, state %v: U = %v and %v, want %v", text, z, u[k], all.U[k], want)
		}
		for i := range z {
			const h = 1e-5
			old := z[i]
			z[i] = old + h
			up := value(z)
			z[i] = old - h
			slope := (up - value(z)) / (2 * h)
			z[i] = old
			if got := float64(g[2*(k*sp.Sites+i)+1] - g[2*(k*sp.Sites+i)]); math.Abs(got-slope) > 1e-5 {
				t.Fatalf("%s, state %v, site %d: gradient %v, want %v", text, z, i, got, slope)
			}
		}
	}
}

// relaxed is U at real states.
func relaxed(e energies.Energy) func(z []float64) float64 {
	if m, ok := e.(interface {
		Data() ([]float64, []bool)
	}); ok {
		x, y := m.Data()
		return func(z []float64) float64 {
			u := 0.0
			for j, one := range y {
				t := 0.0
				for i, v := range z {
					t += x[j*len(z)+i] * v
				}
				u += t*agree(one) - math.Log(1+math.Exp(t))
			}
			return u
		}
	}
	m := e.(interface {
		Weights() ([]float64, []float64, []float64)
	})
	w, b, c := m.Weights()
	return func(z []float64) float64 {
		u := 0.0
		for k, bias := range c {
			for i, v := range z {
				bias += w[k*len(z)+i] * v
			}
			u += math.Log(1 + math.Exp(bias))
		}
		for i, v := range z {
			u += b[i] * v
		}
		return u
	}
}

func TestParseErrors(t *testing.T) {
	for text, says := range map[string]string{
		"isin:3x3,1":        "unknown form",
		"ising:3x3":         "want ising:",
		"ising:3x3,x":       "want ising:",
		"ising:3x3,1,2,3":   "want ising:",
		"ising:0x3,1":       "want a number from 1",
		"ising:missing,1":   "no such file",
		"rbm:file,1":        "want rbm:",
		"potts:3x3,1,1":     "at least two are needed",
		"potts:3x3,2.5,1":   "want potts:",
		"bernoulli:3,1.5":   "probability",
		"logistic:3x4":      "even number",
		"ising:70000x70000": "want ising:",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", text, err, says)
		}
	}
}

// TestGraphFiles reads one graph in three formats, and malformed files, whose line is named.
func TestGraphFiles(t *testing.T) {
	for name, text := range map[string]string{
		"dimacs": "c a path\np edge 3 2\ne 1 2\ne 2 3\n",
		"g-set":  "3 2\n1 2 1\n2 3 1\n",
		"list":   "# a path\n0 1\n1 2 # the end\n",
	} {
		g, err := graph.Read(strings.NewReader(text), name)
		if err != nil || g.Sites != 3 || len(g.Edges) != 2 || g.Edges[1] != (graph.Edge{I: 1, J: 2, Weight: 1}) {
			t.Errorf("%s: %+v, %v", name, g, err)
		}
	}
	for text, line := range map[string]int{
		"3 2\n1 2 1\n2 4 1\n":        3,
		"3 2\n1 2 1\n2 3 x\n":        3,
		"0 1\n1 1\n":                 2,
		"0 1\n\n# c\n1 2 3 4\n":      4,
		"p edge 3 5\ne 1 2\n":        1,
		"p edge 3 2\ne 1 2\na 2 3\n": 3,
		"0 -1\n":                     1,
		"":                           1,
	} {
		var bad *energies.DefinitionError
		if _, err := graph.Read(strings.NewReader(text), "f"); !errors.As(err, &bad) || bad.Line != line {
			t.Errorf("%q: %v, want line %d", text, err, line)
		}
	}
	torus, err := graph.Lattice([]int{4, 6}, 1, true)
	if err != nil || len(torus.Edges) != 48 || len(torus.Colours()) != 2 {
		t.Errorf("torus: %v", err)
	}
}
