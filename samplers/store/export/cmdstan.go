package export

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/gradhop/gradhop/samplers/store"
)

// CmdStan is a set of files in CmdStan's CSV format, one per chain, written by CmdStan or by
// [WriteCSV]. Draws are read from the files on demand.
type CmdStan struct {
	paths   []string
	columns []string
	skip    []int // number of warm-up rows per file
	draws   int
}

// OpenCmdStan reads the files and checks that they have equal columns and equal numbers of draws. Rows
// of warm-up, identified by the comments, are skipped. Errors are *store.Error or those of the system.
func OpenCmdStan(paths ...string) (*CmdStan, error) {
	if len(paths) == 0 {
		return nil, &store.Error{Path: "paths", Reason: "no CSV file"}
	}
	s := &CmdStan{paths: slices.Clone(paths)}
	for k, path := range paths {
		f, err := scanCSV(path, nil, nil)
		if err != nil {
			return nil, err
		}
		warm := min(f.warmup(), f.rows)
		if k == 0 {
			s.columns, s.draws = f.columns, f.rows-warm
		}
		if !slices.Equal(f.columns, s.columns) {
			return nil, &store.Error{Path: path, Reason: "columns differ from those of " + paths[0]}
		}
		if f.rows-warm != s.draws {
			return nil, &store.Error{Path: path, Reason: fmt.Sprintf("%d draws, but %s has %d", f.rows-warm, paths[0], s.draws)}
		}
		s.skip = append(s.skip, warm)
	}
	return s, nil
}

// Chains returns the number of files.
func (s *CmdStan) Chains() int { return len(s.paths) }

// Draws returns the number of draws of each chain, without warm-up.
func (s *CmdStan) Draws() int { return s.draws }

// Columns returns the names of the columns.
func (s *CmdStan) Columns() []string { return slices.Clone(s.columns) }

// Read returns columns by index: [column][chain][draw].
func (s *CmdStan) Read(columns ...int) ([][][]float64, error) {
	out := make([][][]float64, len(columns))
	for k := range out {
		out[k] = make([][]float64, len(s.paths))
	}
	for c, path := range s.paths {
		for k := range out {
			out[k][c] = make([]float64, 0, s.draws)
		}
		_, err := scanCSV(path, columns, func(row int, values []float64) {
			for k, v := range values {
				if row >= s.skip[c] {
					out[k][c] = append(out[k][c], v)
				}
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Diagnose computes the table of the files' draws: lp__ first, without the sampler's columns. The
// column weight__, if present, holds weights. Errors are those of Read.
func (s *CmdStan) Diagnose(o store.TableOptions) (*store.Table, error) {
	in := store.Columns{Chains: len(s.paths), Draws: s.draws, LP: slices.Index(s.columns, stanNames[store.LogDensity]), Read: s.Read}
	for k, name := range s.columns {
		if !strings.HasSuffix(name, "__") {
			in.Names, in.Places = append(in.Names, indexed(name)), append(in.Places, k)
		}
	}
	in.Weight = slices.Index(s.columns, stanNames[store.Weight])
	return store.DiagnoseColumns(in, o)
}

// indexed converts x.1.2 to x[1,2].
func indexed(column string) string {
	name, index, ok := strings.Cut(column, ".")
	if !ok {
		return column
	}
	return name + "[" + strings.ReplaceAll(index, ".", ",") + "]"
}

// csvFile is the metadata of a file.
type csvFile struct {
	columns  []string
	settings map[string]string
	adapted  int // rows before the comment that ends adaptation, -1 without one
	rows     int
}

// warmup returns the number of warm-up rows: those before the end of adaptation, else the number given
// by the settings.
func (f *csvFile) warmup() int {
	saved := f.settings["save_warmup"]
	if saved != "1" && saved != "true" {
		return 0
	}
	if f.adapted > 0 {
		return f.adapted
	}
	n, _ := strconv.Atoi(f.settings["num_warmup"])
	thin, err := strconv.Atoi(f.settings["thin"])
	if err != nil || thin < 1 {
		thin = 1
	}
	return n / thin
}

// scanCSV reads a file line by line and calls visit with the requested columns of each row.
func scanCSV(path string, columns []int, visit func(row int, values []float64)) (*csvFile, error) {
	in, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	defer in.Close()
	f := &csvFile{settings: map[string]string{}, adapted: -1}
	values := make([]float64, len(columns))
	var fields [][]byte
	lines := bufio.NewReaderSize(in, 1<<16)
	for number := 1; ; number++ {
		line, err := readLine(lines)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, &store.Error{Path: path, Reason: "cannot be read", Err: err}
		}
		bad := func(format string, args ...any) error {
			return &store.Error{Path: path, Reason: fmt.Sprintf("line %d: ", number) + fmt.Sprintf(format, args...)}
		}
		switch {
		case len(line) == 0:
		case line[0] == '#':
			f.comment(string(line[1:]))
		case f.columns == nil:
			f.columns = strings.Split(string(line), ",")
			if _, err := strconv.ParseFloat(f.columns[0], 64); err == nil {
				return nil, bad("want column names, not numbers")
			}
		default:
			fields = splitRow(fields[:0], line)
			if len(fields) != len(f.columns) {
				return nil, bad("%d numbers for %d columns", len(fields), len(f.columns))
			}
			for k, col := range columns {
				if values[k], err = strconv.ParseFloat(string(fields[col]), 64); err != nil && !errors.Is(err, strconv.ErrRange) {
					return nil, bad("column %s: %q is not a number", f.columns[col], fields[col])
				}
			}
			if visit != nil {
				visit(f.rows, values)
			}
			f.rows++
		}
	}
	if f.columns == nil {
		return nil, &store.Error{Path: path, Reason: "no line with column names"}
	}
	return f, nil
}

// comment parses a setting in a comment; the first of a name counts.
func (f *csvFile) comment(line string) {
	line = strings.TrimSpace(line)
	if strings.HasPrefix(line, "Adaptation terminated") && f.adapted < 0 {
		f.adapted = f.rows
	}
	name, value, ok := strings.Cut(strings.TrimSpace(strings.TrimSuffix(line, "(Default)")), "=")
	name = strings.TrimSpace(name)
	if _, seen := f.settings[name]; ok && !seen {
		f.settings[name] = strings.TrimSpace(value)
	}
}

// readLine returns a line of any length without its line break.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		long := slices.Clone(line)
		for errors.Is(err, bufio.ErrBufferFull) {
			line, err = r.ReadSlice('\n')
			long = append(long, line...)
		}
		line = long
	}
	if err != nil && (len(line) == 0 || !errors.Is(err, io.EOF)) {
		return nil, err
	}
	return bytes.TrimRight(line, "\r\n"), nil
}

func splitRow(fields [][]byte, line []byte) [][]byte {
	for {
		k := bytes.IndexByte(line, ',')
		if k < 0 {
			return append(fields, bytes.TrimSpace(line))
		}
		fields = append(fields, bytes.TrimSpace(line[:k]))
		line = line[k+1:]
	}
}
