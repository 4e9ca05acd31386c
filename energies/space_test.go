package energies

import (
	"errors"
	"strings"
	"testing"
)

func TestSpaceCheck(t *testing.T) {
	for _, good := range []*Space{
		{Sites: 1, Values: 2},
		{Sites: 3, Values: 2, Kind: Spin},
		{Sites: 2, Values: 5, Kind: Ordinal, Low: -2, Allowed: [][]int32{{0, 4}}},
		{Sites: 2, Values: 5, Allowed: [][]int32{{0}, {1, 2, 3}}},
	} {
		if err := good.Check(); err != nil {
			t.Errorf("%+v: %v", good, err)
		}
	}
	for _, bad := range []struct {
		space *Space
		site  int
		says  string
	}{
		{nil, -1, "nil space"},
		{&Space{Values: 2}, -1, "0 sites"},
		{&Space{Sites: 1, Values: 1}, -1, "1 values per site"},
		{&Space{Sites: 1, Values: 3, Kind: Binary}, -1, "binary space"},
		{&Space{Sites: 3, Values: 4, Allowed: [][]int32{{0}, {1}}}, -1, "2 allowed lists for 3 sites"},
		{&Space{Sites: 2, Values: 4, Allowed: [][]int32{{0}, {}}}, 1, "no allowed value"},
		{&Space{Sites: 1, Values: 4, Allowed: [][]int32{{1, 4}}}, 0, "allowed value 4 is outside 0..3"},
		{&Space{Sites: 1, Values: 4, Allowed: [][]int32{{2, 2}}}, 0, "increasing order"},
	} {
		var e *SpaceError
		if err := bad.space.Check(); !errors.As(err, &e) || e.Site != bad.site || !strings.Contains(e.Error(), bad.says) {
			t.Errorf("%+v: %v, want site %d and %q", bad.space, err, bad.site, bad.says)
		}
	}
}

func TestSquaredDistance(t *testing.T) {
	for _, c := range []struct {
		kind Kind
		v, w int32
		want float64
	}{
		{Categorical, 1, 3, 2}, {Binary, 0, 1, 1}, {Spin, 1, 0, 4}, {Ordinal, 1, 4, 9},
		{Categorical, 2, 2, 0}, {Ordinal, 3, 3, 0}, {Spin, 1, 1, 0},
	} {
		s := &Space{Sites: 1, Values: 5, Kind: c.kind}
		if got := s.SquaredDistance(c.v, c.w); got != c.want {
			t.Errorf("%s: D²(%d, %d) = %g, want %g", c.kind, c.v, c.w, got, c.want)
		}
	}
}

func TestCheckBatch(t *testing.T) {
	s := &Space{Sites: 2, Values: 5, Allowed: [][]int32{{0, 1}, {2, 4}}}
	if err := s.CheckBatch(Batch{Space: s, Codes: []int32{0, 2, 1, 4}}); err != nil {
		t.Error(err)
	}
	for _, codes := range [][]int32{{0, 2, 1}, {0, 3}, {2, 2}, {0, 5}, {-1, 2}} {
		var e *SpaceError
		if err := s.CheckBatch(Batch{Space: s, Codes: codes}); !errors.As(err, &e) {
			t.Errorf("codes %v pass", codes)
		}
	}
}

func TestBatchViews(t *testing.T) {
	s := &Space{Sites: 2, Values: 9}
	b := Batch{Space: s, Codes: []int32{1, 2, 3, 4, 5, 6}}
	c := b.Clone()
	b.Slice(1, 3).Chain(1)[0] = 8
	if b.Chains() != 3 || b.Codes[4] != 8 || c.Codes[4] != 5 {
		t.Errorf("%d chains, %v, clone %v", b.Chains(), b.Codes, c.Codes)
	}
	if grown := append(b.Chain(0), 7); b.Codes[2] != 3 {
		t.Errorf("appending to a chain (%v) wrote into the next one", grown)
	}
}
