package mlm

import (
	"container/list"
	"encoding/binary"
	"sync"

	"github.com/gradhop/gradhop/energies"
)

// memo keeps what the model said of the states seen last. Chains of a peaked
// energy return to the same few states, propose to stay, and meet each other;
// a copy costs a thousandth of a run of the model. Results do not change: a row of
// a batch is the same whatever rows stand beside it (on CPU; see Infill).
type memo struct {
	bytes int64 // room when empty

	mu    sync.Mutex
	room  int64 // bytes left
	last  *list.List
	known map[string]*list.Element
}

// memoEntry is one state: U and, [site, value], the gradient or tilt.
type memoEntry struct {
	key string
	u   float64
	g   []float32
}

func newMemo(bytes int64) *memo {
	m := &memo{bytes: bytes}
	m.forget()
	return m
}

// forget empties the memo.
func (m *memo) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.room, m.last, m.known = m.bytes, list.New(), map[string]*list.Element{}
}

// memoKey names a state under a product.
func memoKey(p product, codes []int32) string {
	k := make([]byte, 1, 1+4*len(codes))
	k[0] = byte(p)
	for _, v := range codes {
		k = binary.LittleEndian.AppendUint32(k, uint32(v))
	}
	return string(k)
}

// get writes what is known under key to u and g, and reports whether it is.
func (m *memo) get(key string, u *float64, g []float32) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.known[key]
	if !ok {
		return false
	}
	m.last.MoveToFront(e)
	entry := e.Value.(*memoEntry)
	*u = entry.u
	copy(g, entry.g)
	return true
}

// put keeps a state, in place of those that were not asked for longest.
func (m *memo) put(key string, u float64, g []float32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.known[key]; ok {
		return
	}
	size := int64(4*len(g) + 2*len(key) + 128)
	var entry *memoEntry
	for m.room < size {
		oldest := m.last.Back()
		if oldest == nil {
			return // larger than all the room there is
		}
		entry = m.last.Remove(oldest).(*memoEntry)
		delete(m.known, entry.key)
		m.room += int64(4*len(entry.g) + 2*len(entry.key) + 128)
	}
	if entry == nil || len(entry.g) != len(g) {
		entry = &memoEntry{g: make([]float32, len(g))}
	}
	entry.key, entry.u = key, u
	copy(entry.g, g)
	m.room -= size
	m.known[key] = m.last.PushFront(entry)
}

// pending is the part of a batch that the model has to be run on.
type pending struct {
	x    energies.Batch
	keys []string
	at   [][]int // chains that each state of x stands at
}

// recall fills u and g ([chain, row]) from the memo, and returns the states that
// are not in it, each once.
func (e *Infill) recall(p product, u []float64, g []float32, row int, x energies.Batch) pending {
	todo := pending{x: energies.Batch{Space: x.Space}}
	index := map[string]int{}
	for c := range u {
		key := memoKey(p, x.Chain(c))
		if e.memo.get(key, &u[c], g[c*row:(c+1)*row]) {
			continue
		}
		i, ok := index[key]
		if !ok {
			i = len(todo.keys)
			index[key] = i
			todo.keys = append(todo.keys, key)
			todo.at = append(todo.at, nil)
			todo.x.Codes = append(todo.x.Codes, x.Chain(c)...)
		}
		todo.at[i] = append(todo.at[i], c)
	}
	return todo
}
