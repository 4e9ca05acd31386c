package infill_test

import (
	"context"
	"fmt"
	"log"

	"github.com/gradhop/gradhop/energies/neural/mlm"
	"github.com/gradhop/gradhop/models"
	"github.com/gradhop/gradhop/models/hub"
	"github.com/gradhop/gradhop/tasks/infill"
)

func Example() {
	ctx := context.Background()
	m, err := infill.Open(ctx, models.Default, hub.Options{}, mlm.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	p, err := m.Text("She [MASK] the door and [MASK] into the room.", infill.TextOptions{NoPunctuation: true})
	if err != nil {
		log.Fatal(err)
	}
	a, err := p.Search(ctx, infill.SearchOptions{Top: 1})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(a.Sentences[0].Text)
	// Output: She opens the door and goes into the room.
}
