package ebm_test

import (
	"image"
	"testing"

	"github.com/gradhop/gradhop/energies"
	"github.com/gradhop/gradhop/tasks/ebm"
)

// A picture of completions has, for each row, what was kept, the completion and the row.
func TestGridOfCompletions(t *testing.T) {
	space := energies.Space{Kind: energies.Binary, Sites: 2, Values: 2}
	im := ebm.GridOfCompletions(&space, []int32{1, 1}, []bool{false, true}, []int32{1, 0}, 1, 2)
	if im.Bounds() != image.Rect(0, 0, 10, 3) {
		t.Fatalf("bounds %v, want 10 x 3", im.Bounds())
	}
	const black, white, border = 0, 1, 2
	want := []uint8{border, white, border, border, white, black, border, white, white, border}
	for x, w := range want {
		if got := im.ColorIndexAt(x, 1); got != w {
			t.Errorf("pixel %d: colour %d, want %d", x, got, w)
		}
	}
}

func TestVisibleScale(t *testing.T) {
	for width, want := range map[int]int{1: 64, 21: 20, 233: 2, 399: 2, 900: 2} {
		im := image.NewPaletted(image.Rect(0, 0, width, 1), nil)
		if got := ebm.VisibleScale(im); got != want {
			t.Errorf("%d wide: scale %d, want %d", width, got, want)
		}
	}
}
