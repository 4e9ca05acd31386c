package reference

import (
	"math"

	"github.com/gradhop/gradhop/onnx"
)

func init() {
	operators["GridSample"] = gridSample
	doubleSince["GridSample"] = 20
}

// gridSample interpolates one place after another.
func gridSample(n *onnx.Node, in []*Array) (*Array, error) {
	x, grid := in[0], in[1]
	r := len(x.Shape) - 2
	y := newArray(append(append([]int64{}, x.Shape[:2]...), grid.Shape[1:1+r]...)...)
	aligned := n.Int("align_corners", 0) != 0
	mode, padding := n.Str("mode", "linear"), n.Str("padding_mode", "zeros")
	places(y.Shape, func(o []int64) {
		place := append([]int64{o[0]}, o[2:]...)
		sum := 0.0
		at := append([]int64{}, o...)
		var along func(a int, w float64)
		along = func(a int, w float64) {
			if a == r {
				sum += w * x.Data[x.index(at...)]
				return
			}
			size := float64(x.Shape[2+a])
			g := grid.Data[grid.index(append(place, int64(r-1-a))...)]
			t := ((g+1)*size - 1) / 2
			if aligned {
				t = (g + 1) / 2 * (size - 1)
			}
			for k, v := range gridWeights(mode, padding, aligned, t, size) {
				if k, ok := gridPixel(padding, aligned, k, size); ok && v != 0 {
					at[2+a] = int64(k)
					along(a+1, w*v)
				}
			}
		}
		along(0, 1)
		y.Data[y.index(o...)] = sum
	})
	return y, nil
}

// gridWeights returns the weights of the pixels around t.
func gridWeights(mode, padding string, aligned bool, t, size float64) map[float64]float64 {
	if mode == "nearest" {
		t = math.RoundToEven(t)
	}
	if mode != "bicubic" && mode != "cubic" {
		if into, ok := gridPixel(padding, aligned, t, size); ok {
			t = into
		}
	}
	if mode == "nearest" {
		return map[float64]float64{t: 1}
	}
	kernel, reach := hat, 1.0
	if mode == "bicubic" || mode == "cubic" {
		kernel, reach = func(d float64) float64 { return keys(d, -0.75) }, 2
	}
	w := map[float64]float64{}
	for k := math.Floor(t) - reach + 1; k <= math.Floor(t)+reach; k++ {
		w[k] = kernel(t - k)
	}
	return w
}

// gridPixel brings a place into the image, or says that there is nothing.
func gridPixel(padding string, aligned bool, t, size float64) (float64, bool) {
	switch padding {
	case "border":
		return math.Min(math.Max(t, 0), size-1), true
	case "reflection":
		lo, hi := -0.5, size-0.5
		if aligned {
			lo, hi = 0, size-1
		}
		for t < lo || t > hi {
			if t < lo {
				t = 2*lo - t
			} else {
				t = 2*hi - t
			}
		}
		return t, true
	}
	return t, t >= 0 && t <= size-1
}
