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

// envCache names a folder that takes the place of gradhop/ in the user's cache folder.
const envCache = "GRADHOP_CACHE"

// Vectors keeps on disk what a vision tower made of pictures, by their content: moved and
// renamed files are known, changed ones are not. One file holds one vector; it is written
// beside and renamed, so that any number of processes may read and write the same cache, and
// carries its own checksum, so that one that is cut off or damaged counts as absent and is
// written anew. The caches of all models together take 256 MiB at most, but for what is
// being written: the vectors that were not used for longest go first.
//
// A nil *Vectors is a cache that is switched off: it knows nothing and keeps nothing.
type Vectors struct {
	dir   string
	key   [sha256.Size]byte
	width int
	most  int64        // bytes of all caches in the folder of dir
	puts  atomic.Int64 // calls of Put that kept something
}

// magic begins every file of a cache, with the version of its layout.
const magic = "gradhop vector 1\n"

// keyBytes is the length of what names the folder of a model.
const keyBytes = 12

// CacheDir is the folder of all caches of vectors: vectors/ in $GRADHOP_CACHE or, without it,
// in gradhop/ of [os.UserCacheDir].
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

// OpenVectors opens the cache in dir, which need not be there yet, for vectors of width
// numbers that the model of the given digest makes of pictures prepared by pre. The digest
// must stand for all weights of the vision tower.
func OpenVectors(dir, model string, pre *Preprocessor, width int) *Vectors {
	key := sha256.Sum256(fmt.Appendf(nil, "%q %q %d", model, pre.Digest(), width))
	return &Vectors{dir: filepath.Join(dir, hex.EncodeToString(key[:keyBytes])), key: key, width: width, most: mostBytes}
}

// path is the file of a picture.
func (v *Vectors) path(sum Sum) string { return filepath.Join(v.dir, sum.String()) }

// Has reports whether [Vectors.Get] would find the picture.
func (v *Vectors) Has(sum Sum) bool {
	_, ok := v.Get(sum)
	return ok
}

// Get returns the vector of the picture with this content. Whatever is wrong with the file
// that should hold it, the answer is that there is none.
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

// Put keeps the vector of the picture with this content. An error leaves the cache as it
// was, and is no reason to stop.
func (v *Vectors) Put(sum Sum, vector []float32) (err error) {
	if v == nil {
		return nil
	}
	if len(vector) != v.width {
		return fmt.Errorf("pictures: a vector of %d numbers in a cache of vectors of %d", len(vector), v.width)
	}
	data := v.head(sum)
	for _, x := range vector {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
	}
	check := sha256.Sum256(data)
	data = append(data, check[:]...)
	defer func() {
		if err != nil {
			err = fmt.Errorf("pictures: vectors are not kept for the next time: %w; %s names another folder", err, envCache)
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

// head is what a file says before its numbers: what they belong to.
func (v *Vectors) head(sum Sum) []byte {
	head := append([]byte(magic), v.key[:]...)
	return append(head, sum[:]...)
}
