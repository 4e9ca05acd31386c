package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/gradhop/gradhop/cmd/gradhop/internal/app"
)

// talk echoes standard input, or waits until it is cancelled.
func talk(ctx context.Context, a *app.App, args []string) int {
	if args[0] == "wait" {
		a.OnProgress(app.Progress{Label: "waiting"})
		<-ctx.Done()
		return 130
	}
	text, _ := io.ReadAll(a.In)
	fmt.Fprintf(a.Err, "half a line")
	fmt.Fprintf(a.Err, ", %s\nmore", args[0])
	fmt.Fprintf(a.Out, "%s", text)
	return 7
}

func TestAnswers(t *testing.T) {
	in := `{"id": 1, "args": ["one"], "stdin": "<a>\nb"}` + "\n\n" + `{"id": 2, "args": ["two"]}`
	var out strings.Builder
	cmd := New(&app.App{In: strings.NewReader(in), Out: &out}, talk)
	cmd.SetArgs([]string{"--stdio"})
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`{"id":1,"log":"half a line, one"}`, `{"id":1,"log":"more"}`, `{"id":1,"code":7,"stdout":"<a>\nb"}`,
		`{"id":2,"log":"half a line, two"}`, `{"id":2,"log":"more"}`, `{"id":2,"code":7,"stdout":""}`,
	}
	if got := strings.Split(strings.TrimSpace(out.String()), "\n"); !slices.Equal(got, want) {
		t.Errorf("answers\n%s", out.String())
	}
}

// TestCancel cancels a request that runs and one that waits; the next one is served.
func TestCancel(t *testing.T) {
	requests, in := io.Pipe()
	out, answers := io.Pipe()
	cmd := New(&app.App{In: requests, Out: answers}, talk)
	cmd.SetArgs([]string{"--stdio"})
	done := make(chan error, 1)
	go func() { done <- cmd.Execute() }()
	fmt.Fprint(in, `{"id": 1, "args": ["wait"], "progress": true}
{"id": 2, "args": ["wait"], "progress": true}
{"id": 3, "args": ["three"]}
`)
	codes := map[int64]int{}
	for lines := bufio.NewScanner(out); len(codes) < 3 && lines.Scan(); {
		var a answer
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			t.Fatal(err)
		}
		if a.Progress != nil && a.ID == 1 { // it runs: the second waits behind it
			fmt.Fprint(in, "{\"cancel\": 2}\n{\"cancel\": 1}\n")
		}
		if a.Code != nil {
			codes[a.ID] = *a.Code
		}
	}
	if codes[1] != 130 || codes[2] != 130 || codes[3] != 7 {
		t.Errorf("codes %v", codes)
	}
	in.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestBadRequests(t *testing.T) {
	for in, want := range map[string]string{
		"{}\nnonsense\n": "line 2 of the requests",
		`{"id": 1, "args": ["wait"], "progress": true}` + "\n" + `{"id": 1, "args": ["wait"]}` + "\n": "id 1 belongs to a request",
	} {
		// The requests before a bad one are answered: those that wait end with the context.
		ctx, cancel := context.WithCancel(t.Context())
		cmd := New(&app.App{In: strings.NewReader(in), Out: io.Discard}, func(context.Context, *app.App, []string) int { return 0 })
		cmd.SetArgs([]string{"--stdio"})
		cmd.SetContext(ctx)
		err := cmd.Execute()
		cancel()
		if err != nil && strings.Contains(want, "id 1") && !strings.Contains(err.Error(), want) || strings.Contains(want, "line 2") && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: error %v", in, err)
		}
	}
}

// broken fails every write, as a pipe whose reader is gone.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

// TestReaderGone: the request that runs ends when nobody reads its answers.
func TestReaderGone(t *testing.T) {
	requests, in := io.Pipe()
	defer in.Close()
	cmd := New(&app.App{In: requests, Out: broken{}}, talk)
	cmd.SetArgs([]string{"--stdio"})
	done := make(chan error, 1)
	go func() { done <- cmd.Execute() }()
	fmt.Fprintln(in, `{"id": 1, "args": ["wait"], "progress": true}`)
	var bad *app.OutputError
	if err := <-done; !errors.As(err, &bad) {
		t.Errorf("error %v", err)
	}
}
