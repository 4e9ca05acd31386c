package known

// Size estimates an energy from its description, before anything is allocated.
type Size struct {
	// Sites and Values are those of its space.
	Sites, Values float64
	// Bytes is the memory that making it takes at most.
	Bytes float64
}

// SizeOf returns the size of the energy described by text, the zero Size for one on the graph of a
// file, which is small next to its file. The error is an *energies.DefinitionError.
func SizeOf(text string) (Size, error) {
	f, p, err := find(text)
	if err != nil || p.path != "" {
		return Size{}, err
	}
	return f.size(p), nil
}

// dim returns dimension k, or 1 if it is missing.
func (p *part) dim(k int) float64 {
	if k < len(p.dims) {
		return float64(p.dims[k])
	}
	return 1
}

func (p *part) lattice(values float64) Size {
	sites := 1.0
	for k := range p.dims {
		sites *= p.dim(k)
	}
	return ofGraph(sites, values, sites*float64(len(p.dims)))
}

// ofGraph returns the size of an energy on a graph: lists of edges while they grow, and those of
// neighbours.
func ofGraph(sites, values, edges float64) Size {
	return Size{sites, values, 64*sites + 128*edges}
}

// rbmWeight is the number of bytes for each weight of an RBM: float64, and copies for the runtime.
const rbmWeight = 24
