package store

import (
	"encoding/json"
	"fmt"
	"path"
	"strconv"
)

// Phase is the part of a run that draws are of.
type Phase uint8

const (
	// Sampling is what follows warm-up.
	Sampling Phase = iota
	// Warmup is what comes before.
	Warmup
)

// String returns "sampling" or "warmup".
func (p Phase) String() string {
	if p == Warmup {
		return "warmup"
	}
	return "sampling"
}

// posterior and stats are the names of the phase's groups.
func (p Phase) posterior() string {
	if p == Warmup {
		return "warmup_posterior"
	}
	return "posterior"
}

func (p Phase) stats() string {
	if p == Warmup {
		return "warmup_sample_stats"
	}
	return "sample_stats"
}

// Names of the variables.
const (
	xName        = "x"
	lpName       = "lp"
	acceptName   = "acceptance_rate"
	hopsName     = "n_hops"
	stepSizeName = "step_size"
	weightName   = "weight"
)

// Sizes of chunks. They are part of the format: runs to be merged, or to be
// compared by their bytes, must have the same.
const (
	chunkBytes  = 64 << 10 // of x, about
	chunkDraws  = 4096     // of x, at most
	statDraws   = 2048     // of a statistic
	coordDraws  = 8192     // of the coordinate draw
	zlibLevel   = 1
	coordLength = 8 // bytes of a coordinate
)

// variable is an array of the store.
type variable struct {
	phase Phase
	group string
	name  string
	dtype string // of NumPy, as "<f8"
	size  int    // bytes of a number
	sites int    // numbers of a draw; 0 for a statistic, which has no dimension site
	draws int    // draws of a chunk
	units string
}

func (v variable) path() string { return path.Join(zarrName, v.group, v.name) }

// rowBytes is the size of a draw.
func (v variable) rowBytes() int { return v.size * max(v.sites, 1) }

// chunkPath is the file of a chunk of a chain, numbered by its place.
func (v variable) chunkPath(chain, chunk int) string {
	name := strconv.Itoa(chain) + "." + strconv.Itoa(chunk)
	if v.sites > 0 {
		name += ".0"
	}
	return path.Join(v.path(), name)
}

// layout lists the arrays of a run, but for coordinates.
func layout(h Header) []variable {
	var all []variable
	for _, p := range []Phase{Sampling, Warmup} {
		if p == Warmup && h.Warmup == 0 {
			continue
		}
		if p == Sampling || h.SaveWarmup {
			x := variable{phase: p, group: p.posterior(), name: xName, sites: h.Space.Sites}
			x.dtype, x.size = integer(h.Space.bounds())
			x.draws = min(max(1, chunkBytes/x.rowBytes()), chunkDraws)
			all = append(all, x)
		}
		stat := variable{phase: p, group: p.stats(), dtype: "<f8", size: 8, draws: statDraws}
		for _, name := range []string{lpName, acceptName, hopsName, stepSizeName, weightName} {
			v := stat
			v.name = name
			switch name {
			case lpName:
				v.units = "nats"
			case hopsName:
				v.dtype, v.size = "<i4", 4
			case stepSizeName:
				if !h.StepSize {
					continue
				}
			case weightName:
				if !h.Weighted {
					continue
				}
			}
			all = append(all, v)
		}
	}
	return all
}

// integer returns the narrowest NumPy type for lo..hi, and its size.
func integer(lo, hi int) (string, int) {
	switch {
	case lo >= 0 && hi < 1<<8:
		return "|u1", 1
	case lo >= -1<<7 && hi < 1<<7:
		return "|i1", 1
	case lo >= 0 && hi < 1<<16:
		return "<u2", 2
	case lo >= -1<<15 && hi < 1<<15:
		return "<i2", 2
	}
	return "<i4", 4
}

// zarray is the metadata of an array, its fields in alphabetical order as zarr
// writes them. The fill value of integers is null: readers take a number for
// missing draws.
type zarray struct {
	Chunks     []int      `json:"chunks"`
	Compressor *zlibCodec `json:"compressor"`
	Dtype      string     `json:"dtype"`
	FillValue  *string    `json:"fill_value"`
	Filters    []string   `json:"filters"`
	Order      string     `json:"order"`
	Shape      []int      `json:"shape"`
	Format     int        `json:"zarr_format"`
}

type zlibCodec struct {
	ID    string `json:"id"`
	Level int    `json:"level"`
}

func newArray(dtype string, chunks, shape []int) zarray {
	a := zarray{Chunks: chunks, Compressor: &zlibCodec{"zlib", zlibLevel}, Dtype: dtype, Order: "C", Shape: shape, Format: 2}
	if dtype[1] == 'f' {
		nan := "NaN"
		a.FillValue = &nan
	}
	return a
}

// array describes v with draws of a number of chains.
func (v variable) array(chains, draws int) zarray {
	chunks, shape := []int{1, v.draws}, []int{chains, draws}
	if v.sites > 0 {
		chunks, shape = append(chunks, v.sites), append(shape, v.sites)
	}
	return newArray(v.dtype, chunks, shape)
}

// arrayAttrs are the attributes of an array; the first is what xarray goes by.
type arrayAttrs struct {
	Dimensions []string `json:"_ARRAY_DIMENSIONS"`
	Units      string   `json:"units,omitempty"`
}

// groupAttrs are the attributes of the root and of every group. What has parts
// is JSON in a text: attributes of other formats, to which ArviZ converts, are
// numbers and texts only.
type groupAttrs struct {
	CreatedBy   string `json:"created_by"`
	Library     string `json:"inference_library"`
	Version     string `json:"inference_library_version"`
	Versions    string `json:"versions"`
	ModelSHA256 string `json:"model_sha256"`
	Sampler     string `json:"sampler"`
	Settings    string `json:"settings"`
	Seed        uint64 `json:"seed"`
	Space       string `json:"space"`
	Warmup      int    `json:"warmup"`
	Thin        int    `json:"thin"`
}

// text is v as JSON on one line; an empty map is {} whether nil or not.
func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("store: " + err.Error()) // our own types
	}
	if string(b) == "null" {
		return "{}"
	}
	return string(b)
}

type zgroup struct {
	Format int `json:"zarr_format"`
}

// metadata returns the metadata files of draws.zarr by their paths in it.
func metadata(h Header, draws, warmup int) map[string]json.RawMessage {
	files := map[string]json.RawMessage{}
	put := func(name string, v any) { files[name] = json.RawMessage(marshal(v)) }
	group := groupAttrs{
		CreatedBy: "gradhop", Library: "gradhop", Version: h.Gradhop, Versions: text(h.Versions), ModelSHA256: h.ModelSHA256,
		Sampler: h.Sampler, Settings: text(h.Settings), Seed: h.Seed, Space: text(h.Space), Warmup: h.Warmup, Thin: h.Thin,
	}
	put(".zgroup", zgroup{2})
	put(".zattrs", group)
	chains := len(h.ChainIDs)
	for _, v := range layout(h) {
		n := draws
		if v.phase == Warmup {
			n = warmup
		}
		put(v.group+"/.zgroup", zgroup{2})
		put(v.group+"/.zattrs", group)
		dims := []string{"chain", "draw"}
		if v.sites > 0 {
			dims = append(dims, "site")
		}
		put(v.group+"/"+v.name+"/.zarray", v.array(chains, n))
		put(v.group+"/"+v.name+"/.zattrs", arrayAttrs{dims, v.units})
		put(v.group+"/chain/.zarray", newArray("<i8", []int{chains}, []int{chains}))
		put(v.group+"/chain/.zattrs", arrayAttrs{Dimensions: []string{"chain"}})
		put(v.group+"/draw/.zarray", newArray("<i8", []int{coordDraws}, []int{n}))
		put(v.group+"/draw/.zattrs", arrayAttrs{Dimensions: []string{"draw"}})
	}
	return files
}

// consolidated is the one file that holds all metadata.
type consolidated struct {
	Metadata map[string]json.RawMessage `json:"metadata"`
	Format   int                        `json:"zarr_consolidated_format"`
}

// parseShape returns the draws that an array of a consolidated file has.
func (c consolidated) parseShape(v variable, chains int) (int, error) {
	name := v.group + "/" + v.name + "/.zarray"
	text, ok := c.Metadata[name]
	if !ok {
		return 0, fmt.Errorf("%s is missing", name)
	}
	var a zarray
	if err := json.Unmarshal(text, &a); err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	if len(a.Shape) < 2 || a.Shape[1] < 0 {
		return 0, fmt.Errorf("%s: shape %v", name, a.Shape)
	}
	want := v.array(chains, a.Shape[1])
	if fmt.Sprint(a.Shape, a.Chunks, a.Dtype) != fmt.Sprint(want.Shape, want.Chunks, want.Dtype) {
		return 0, fmt.Errorf("%s: shape %v in chunks %v of %s, where %v, %v and %s are expected", name, a.Shape, a.Chunks, a.Dtype, want.Shape, want.Chunks, want.Dtype)
	}
	return a.Shape[1], nil
}
