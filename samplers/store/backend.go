package store

import (
	"encoding/binary"
	"maps"
	"path"
	"slices"
	"strconv"
)

// series is a variable with the draws that do not fill a chunk yet.
type series struct {
	variable
	rows [][]byte // [chain], each draws mod variable.draws rows long
}

// backend encodes draws and writes files: the far side of a Writer's queue. One
// goroutine uses it.
type backend struct {
	folder
	header Header
	line   line
	series []series
	pack   packer
	// draws counts what was added by phase, shown what the metadata says, and
	// coords the chunks of the coordinate draw.
	draws, shown, coords [2]int
	// told holds the metadata files as they were written, most of them once.
	told map[string]string
}

func newBackend(dir string, d disk, h Header) *backend {
	b := &backend{folder: folder{dir: dir, disk: d}, header: h, line: h.Space.line(), told: map[string]string{}}
	for _, v := range layout(h) {
		b.series = append(b.series, series{v, make([][]byte, len(h.ChainIDs))})
	}
	return b
}

// create makes draws.zarr without a draw.
func (b *backend) create() error {
	if err := b.remove(zarrName); err != nil {
		return err
	}
	for _, s := range b.series {
		for _, name := range []string{s.name, "chain", "draw"} {
			if err := b.mkdir(path.Join(zarrName, s.group, name)); err != nil {
				return err
			}
		}
		if err := b.write(path.Join(zarrName, s.group, "chain", "0"), b.coordinate(b.header.ChainIDs)); err != nil {
			return err
		}
	}
	return b.describe()
}

// coordinate packs numbers as one chunk.
func (b *backend) coordinate(numbers []int64) []byte {
	raw := make([]byte, 0, coordLength*len(numbers))
	for _, n := range numbers {
		raw = binary.LittleEndian.AppendUint64(raw, uint64(n))
	}
	return b.pack.pack(raw, len(raw))
}

// describe writes the metadata: the consolidated file last, since readers take
// what it says for written.
func (b *backend) describe() error {
	files := metadata(b.header, b.draws[Sampling], b.draws[Warmup])
	for p := range b.draws {
		for ; b.coords[p]*coordDraws < b.draws[p]; b.coords[p]++ {
			numbers := make([]int64, coordDraws)
			for k := range numbers {
				numbers[k] = int64(b.coords[p]*coordDraws + k)
			}
			for _, group := range b.groups(Phase(p)) {
				if err := b.write(path.Join(zarrName, group, "draw", strconv.Itoa(b.coords[p])), b.coordinate(numbers)); err != nil {
					return err
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if b.told[name] == string(files[name]) {
			continue
		}
		if err := b.write(path.Join(zarrName, name), files[name]); err != nil {
			return err
		}
		b.told[name] = string(files[name])
	}
	b.shown = b.draws
	return b.write(path.Join(zarrName, ".zmetadata"), marshal(consolidated{files, 1}))
}

// groups lists the groups of a phase.
func (b *backend) groups(p Phase) []string {
	var list []string
	for _, s := range b.series {
		if s.phase == p && !slices.Contains(list, s.group) {
			list = append(list, s.group)
		}
	}
	return list
}

// add appends a draw, and writes the chunks that it fills.
func (b *backend) add(d *slot) error {
	n := b.draws[d.phase]
	for k := range b.series {
		s := &b.series[k]
		if s.phase != d.phase {
			continue
		}
		for c := range s.rows {
			if s.rows[c] == nil {
				s.rows[c] = make([]byte, 0, s.draws*s.rowBytes())
			}
			s.rows[c] = d.appendRow(s.rows[c], s.variable, b.line, c)
		}
		if (n+1)%s.draws == 0 {
			if err := b.flush(s, n/s.draws); err != nil {
				return err
			}
			for c := range s.rows {
				s.rows[c] = s.rows[c][:0]
			}
		}
	}
	b.draws[d.phase]++
	return nil
}

// flush writes a chunk of every chain, full or not.
func (b *backend) flush(s *series, chunk int) error {
	for c, rows := range s.rows {
		if err := b.write(s.chunkPath(c, chunk), b.pack.pack(rows, s.draws*s.rowBytes())); err != nil {
			return err
		}
	}
	return nil
}

// save makes a checkpoint: chunks, metadata, and then what is needed to go on.
func (b *backend) save(c *checkpoint) error {
	for k := range b.series {
		s := &b.series[k]
		n := b.draws[s.phase]
		if n == b.shown[s.phase] {
			continue // as the last checkpoint left it
		}
		if n%s.draws != 0 {
			if err := b.flush(s, n/s.draws); err != nil {
				return err
			}
		}
		if s.phase == Warmup && c.Snapshot.Step >= int64(b.header.Warmup) {
			clear(s.rows) // no more will come
		}
	}
	if b.draws != b.shown {
		if err := b.describe(); err != nil {
			return err
		}
	}
	text, err := c.encode()
	if err != nil {
		return &WriteError{checkpointName, err}
	}
	return b.commit(checkpointName, text)
}

// restore takes a run up where a checkpoint left it: it reads the draws that did
// not fill a chunk, tells readers how many draws there are, and removes draws that
// were made after it.
func (b *backend) restore(c *checkpoint) error {
	b.draws[Sampling], b.draws[Warmup] = b.header.Draws(c.Snapshot.Step)
	for p, n := range b.draws {
		b.coords[p] = (n + coordDraws - 1) / coordDraws
	}
	var u unpacker
	for k := range b.series {
		s := &b.series[k]
		n := b.draws[s.phase]
		over := n % s.draws
		if over == 0 || s.phase == Warmup && c.Snapshot.Step >= int64(b.header.Warmup) {
			continue
		}
		for chain := range s.rows {
			rows, err := u.read(b.dir, s.chunkPath(chain, n/s.draws), over*s.rowBytes())
			if err != nil {
				return err
			}
			s.rows[chain] = append(make([]byte, 0, s.draws*s.rowBytes()), rows...)
		}
	}
	if err := b.describe(); err != nil {
		return err
	}
	for k := range b.series {
		s := &b.series[k]
		if err := b.prune(s.path(), (b.draws[s.phase]+s.draws-1)/s.draws); err != nil {
			return err
		}
		if err := b.prune(path.Join(zarrName, s.group, "draw"), b.coords[s.phase]); err != nil {
			return err
		}
		if len(s.rows[0]) > 0 { // the file may hold more
			if err := b.flush(s, b.draws[s.phase]/s.draws); err != nil {
				return err
			}
		}
	}
	return nil
}
