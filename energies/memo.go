package energies

import (
	"container/list"
	"context"
	"encoding/binary"
	"sync"
)

// Memo wraps an energy and caches its answers to Density, Gradient and Tilt. It evicts the least
// recently used states. Chains of a peaked energy revisit the same few states; a cached answer costs a
// thousandth of a model run. Other queries are passed on.
//
// A Memo returns the same values as the energy if these do not depend on batch composition. It is safe
// for concurrent use.
type Memo struct {
	Oracle
	bytes int64 // capacity

	mu    sync.Mutex
	room  int64 // free bytes
	last  *list.List
	known map[string]*list.Element
}

var _ Oracle = (*Memo)(nil)

// memoEntry is the cached answer for one state: U and the gradient or tilt, [site, value].
type memoEntry struct {
	key string
	u   float64
	g   []float32
}

func (e *memoEntry) size() int64 { return int64(4*len(e.g) + 2*len(e.key) + 128) }

// NewMemo returns a cache of e that uses at most the given number of bytes.
func NewMemo(e Energy, bytes int64) *Memo {
	m := &Memo{Oracle: AsOracle(e), bytes: bytes}
	m.Forget()
	return m
}

// Forget empties the cache.
func (m *Memo) Forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.room, m.last, m.known = m.bytes, list.New(), map[string]*list.Element{}
}

// LogDensity implements Energy.
func (m *Memo) LogDensity(ctx context.Context, u []float64, x Batch) error {
	return m.Answer(ctx, Query{Want: Density, X: x, U: u})
}

// Answer implements Oracle. It copies cached answers and queries the energy once for each remaining
// distinct state.
func (m *Memo) Answer(ctx context.Context, q Query) error {
	var g []float32
	switch q.Want {
	case Density:
	case Gradient:
		g = q.Grad
	case Tilt:
		g = q.Tilt
	default:
		return m.Oracle.Answer(ctx, q)
	}
	row := len(g) / max(1, len(q.U))
	missing, keys, at := m.recall(q, g, row)
	if len(keys) == 0 {
		return ctx.Err()
	}
	fresh := Query{Want: q.Want, X: missing, U: make([]float64, len(keys))}
	rows := make([]float32, len(keys)*row)
	if q.Want == Gradient {
		fresh.Grad = rows
	} else {
		fresh.Tilt = rows
	}
	if err := m.Oracle.Answer(ctx, fresh); err != nil {
		return err
	}
	for i, key := range keys {
		state := rows[i*row : (i+1)*row]
		m.put(key, fresh.U[i], state)
		for _, c := range at[i] {
			q.U[c] = fresh.U[i]
			copy(g[c*row:(c+1)*row], state)
		}
	}
	return nil
}

// recall fills q from the cache. It returns the missing states, their keys, and for each of them the
// chains in that state.
func (m *Memo) recall(q Query, g []float32, row int) (missing Batch, keys []string, at [][]int) {
	missing.Space = q.X.Space
	index := map[string]int{}
	for c := range q.U {
		key := memoKey(q.Want, q.X.Chain(c))
		if m.get(key, &q.U[c], g[c*row:(c+1)*row]) {
			continue
		}
		i, ok := index[key]
		if !ok {
			i = len(keys)
			index[key] = i
			keys, at = append(keys, key), append(at, nil)
			missing.Codes = append(missing.Codes, q.X.Chain(c)...)
			if q.X.IDs != nil {
				missing.IDs = append(missing.IDs, q.X.IDs[c])
			}
		}
		at[i] = append(at[i], c)
	}
	return missing, keys, at
}

// memoKey returns the cache key of a state and a kind of query.
func memoKey(want Capability, codes []int32) string {
	k := make([]byte, 1, 1+4*len(codes))
	k[0] = byte(want)
	for _, v := range codes {
		k = binary.LittleEndian.AppendUint32(k, uint32(v))
	}
	return string(k)
}

// get copies the entry of key to u and g, and reports whether there is one.
func (m *Memo) get(key string, u *float64, g []float32) bool {
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

// put caches an answer, evicting the least recently used ones.
func (m *Memo) put(key string, u float64, g []float32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.known[key]; ok {
		return
	}
	entry := &memoEntry{key: key, u: u, g: append([]float32(nil), g...)}
	for m.room < entry.size() {
		oldest := m.last.Back()
		if oldest == nil {
			return // larger than the cache
		}
		gone := m.last.Remove(oldest).(*memoEntry)
		delete(m.known, gone.key)
		m.room += gone.size()
	}
	m.room -= entry.size()
	m.known[key] = m.last.PushFront(entry)
}
