package run

import "github.com/gradhop/gradhop/onnx/ort"

// Versions are those of the runtime and of the plug-ins that the providers of a run come from.
func Versions(o ort.Options, providers ...string) map[string]string {
	v := map[string]string{"onnxruntime": ort.Version()}
	for _, provider := range providers {
		if o.Provider = provider; ort.PluginVersion(o) != "" {
			v["openvino"] = ort.PluginVersion(o)
		}
	}
	return v
}
