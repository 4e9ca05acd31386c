package pictures

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/gradhop/gradhop/onnx/atomicfile"
)

// envCache is the environment variable that replaces gradhop/ in the user's cache folder.
const envCache = "GRADHOP_CACHE"

// Vectors caches embeddings of pictures on disk, keyed by content: moved and renamed files are found,
// changed files are not. Each file holds one vector with a checksum and is written atomically, so any
// number of processes may share a cache, and a damaged file counts as missing. The caches of all models
// together are limited to 256 MiB; the least recently used vectors are removed first.
//
// A nil *Vectors is a disabled cache: it is always empty.
type Vectors struct {
	dir   string
	key   [sha256.Size]byte
	width int
	most  int64        // limit in bytes for all caches of the folder
	puts  atomic.Int64 // number of successful calls of Put
}

// magic starts every cache file; it includes the format version.
const magic = "gradhop vector 1\n"

// keyBytes is the length of the key that names the folder of a model.
const keyBytes = 12

// CacheDir returns the folder of all caches: vectors/ in $GRADHOP_CACHE or, if unset, in gradhop/ of
// [os.UserCacheDir].
func CacheDir() (string, error) {
	root := os.Getenv(envCache)
	if root == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("pictures: no cache folder: %w; set %s", err, envCache)
		}
		root = filepath.Join(user, "gradhop")
	}
	return filepath.Join(root, "vectors"), nil
}

// OpenVectors opens the cache in dir, which need not exist, for vectors of width numbers: the
// embeddings by the given model of pictures preprocessed by pre. model must identify all weights of the
// image encoder.
func OpenVectors(dir, model string, pre *Preprocessor, width int) *Vectors {
	key := sha256.Sum256(fmt.Appendf(nil, "%q %q %d", model, pre.Digest(), width))
	return &Vectors{dir: filepath.Join(dir, hex.EncodeToString(key[:keyBytes])), key: key, width: width, most: mostBytes}
}

// path returns the file of a picture.
func (v *Vectors) path(sum Sum) string { return filepath.Join(v.dir, sum.String()) }

// Has reports whether [Vectors.Get] would find the picture.
func (v *Vectors) Has(sum Sum) bool {
	_, ok := v.Get(sum)
	return ok
}

// Get returns the vector of the picture with this content, and whether it is in the cache. An invalid
// file counts as missing.
func (v *Vectors) Get(sum Sum) ([]float32, bool) {
	if v == nil {
		return nil, false
	}
	data, err := os.ReadFile(v.path(sum))
	if err != nil {
		return nil, false
	}
	vector := make([]float32, v.width)
	head := v.head(sum)
	if len(data) != len(head)+4*v.width+sha256.Size || !bytes.HasPrefix(data, head) {
		return nil, false
	}
	body, check := data[:len(data)-sha256.Size], data[len(data)-sha256.Size:]
	if got := sha256.Sum256(body); !bytes.Equal(got[:], check) {
		return nil, false
	}
	for i := range vector {
		vector[i] = math.Float32frombits(binary.LittleEndian.Uint32(body[len(head)+4*i:]))
	}
	use(v.path(sum))
	return vector, true
}

// Put stores the vector of the picture with this content. On error the cache is unchanged; the caller
// can continue.
func (v *Vectors) Put(sum Sum, vector []float32) (err error) {
	if v == nil {
		return nil
	}
	if len(vector) != v.width {
		return fmt.Errorf("pictures: vector of length %d does not fit a cache of vectors of length %d", len(vector), v.width)
	}
	data := v.head(sum)
	for _, x := range vector {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
	}
	check := sha256.Sum256(data)
	data = append(data, check[:]...)
	defer func() {
		if err != nil {
			err = fmt.Errorf("pictures: cannot cache vectors: %w; set %s to another folder", err, envCache)
		}
	}()
	if err := os.MkdirAll(v.dir, 0o755); err != nil {
		return err
	}
	write := func(w io.Writer) error { _, err := w.Write(data); return err }
	if err := atomicfile.Write(v.path(sum), write); err != nil {
		return err
	}
	if (v.puts.Add(1)-1)%tidyPuts == 0 {
		tidy(filepath.Dir(v.dir), v.most)
	}
	return nil
}

// head returns the header of a cache file, which identifies its contents.
func (v *Vectors) head(sum Sum) []byte {
	head := append([]byte(magic), v.key[:]...)
	return append(head, sum[:]...)
}
