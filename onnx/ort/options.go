package ort

const (
	// Pinned is the onnxruntime version that is fetched.
	Pinned = "1.29.0"
	// Need is the lowest onnxruntime version that can be used: the one whose
	// C header the binding was built with. Later versions keep that interface.
	Need = "1.29"

	// needAPI is ORT_API_VERSION of that header; version 1.N has API N.
	needAPI = 29

	envLib      = "GRADHOP_ORT_LIB"
	envLibOther = "ONNXRUNTIME_SHARED_LIBRARY_PATH"
	envCache    = "GRADHOP_CACHE"
)

// Options say which library to use and how a session runs. The zero value
// searches for the library, fetches it if there is none, and runs on the CPU
// with all cores.
type Options struct {
	// Name is what errors call the session. "" means "session".
	Name string
	// Library is the path of the onnxruntime library, or of a folder that has
	// it. "" means: search.
	Library string
	// Provider is "cpu", "cuda" (the same as "cuda:0"), "cuda:N" for device N,
	// or "auto": cuda:0 if the library and the machine have it, else cpu.
	// "" means "cpu".
	Provider string
	// Threads is the number of threads that one run uses inside an operator.
	// 0 means one for each core.
	Threads int
	// ExternalDir is the folder of the model's external data, needed when a
	// model's weights are in files of their own. "" means none.
	ExternalDir string
	// LowMemory turns the prepacking of weights off: less memory, slower runs.
	LowMemory bool
	// Unoptimized runs the graph as it is written. The runtime otherwise fuses operators,
	// and for float64 it puts its own numbers in some of them: 1e-5 for the epsilon of a
	// layer normalisation (measured with version 1.29).
	Unoptimized bool
	// ProfilePrefix turns the runtime's profiler on. The profile is written by
	// [Session.Close] to <prefix>_<time>.json. "" means no profile.
	ProfilePrefix string
	// Progress, if not nil, is called during a fetch, from one goroutine, with
	// what is being done and the bytes done of the total (0 if unknown).
	Progress func(stage string, done, total int64)
	// NoFetch forbids the network: the library is only searched for.
	NoFetch bool
}

func (o Options) name() string {
	if o.Name == "" {
		return "session"
	}
	return o.Name
}

func (o Options) progress(stage string, done, total int64) {
	if o.Progress != nil {
		o.Progress(stage, done, total)
	}
}
