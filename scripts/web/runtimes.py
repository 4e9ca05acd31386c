"""Says which runtimes compute the gradient files of the networks in onnx/grad/testdata/arch.

    runtimes.py [--program gradhop] [--runtimes onnxruntime,web,openvino,tract,tvm] [--networks bert,resnet]

Each network and its gradient file, as `gradhop grad --weights own` writes it, run in onnxruntime, in onnxruntime-web (the wasm of the npm
package, in node), OpenVINO, tract and TVM. Gradients are compared with the stored ones of torch autograd in float64. The last
list names the operators that the reduced build onnxruntime-mobile lacked; it has been replaced by full builds.
Needs `pip install onnx onnxruntime openvino tract apache-tvm` and npm.
"""

import argparse
import base64
import collections
import json
import multiprocessing
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import onnx

ROOT = Path(__file__).resolve().parents[2]
ARCH = ROOT / "onnx/grad/testdata/arch"
WEB = "onnxruntime-web@1.30.0"
TOLERANCE = 1e-3  # relative to the largest entry; half precision has its own
# The operators of the standard in onnxruntime's mobile_package.required_operators.config, and Constant, which becomes an initialiser.
MOBILE = """Abs Add And ArgMax ArgMin AveragePool Cast Ceil Clip Concat Constant ConstantOfShape Conv ConvTranspose Cos CumSum DepthToSpace
    DequantizeLinear Div DynamicQuantizeLinear Elu Equal Erf Exp Expand Flatten Floor Gather GatherND Gemm GlobalAveragePool Greater GreaterOrEqual
    Identity If InstanceNormalization LRN LayerNormalization LeakyRelu Less LessOrEqual Log LogSoftmax Loop MatMul MatMulInteger Max
    MaxPool Mean Min Mul Neg NonMaxSuppression NonZero Not Or PRelu Pad Pow QLinearConv QLinearMatMul QuantizeLinear Range Reciprocal ReduceMax
    ReduceMean ReduceMin ReduceProd ReduceSum Relu Reshape Resize ReverseSequence Round Scan ScatterND Shape Sigmoid Sin Size Slice Softmax
    SpaceToDepth Split Sqrt Squeeze Sub Sum Tanh ThresholdedRelu Tile TopK Transpose Unique Unsqueeze Where"""


def array(r: dict) -> np.ndarray:
    return np.frombuffer(base64.b64decode(r["data"]), r["type"]).reshape(r["shape"]).copy()  # OpenVINO wants to write


class Native:
    def __init__(self):
        import onnxruntime

        self.ort = onnxruntime
        self.name = f"onnxruntime {onnxruntime.__version__}"

    def run(self, model: Path, feeds: dict) -> dict:
        options = self.ort.SessionOptions()
        options.log_severity_level = 4
        s = self.ort.InferenceSession(model, options)
        return dict(zip([o.name for o in s.get_outputs()], s.run(None, feeds)))


class Web:
    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        subprocess.run(["npm", "install", "--prefix", self.folder.name, "--ignore-scripts", "--no-audit", "--no-fund", "--no-save", WEB],
                       check=True, capture_output=True)  # fmt: skip
        self.process = subprocess.Popen(["node", Path(__file__).with_name("web.mjs"), f"{self.folder.name}/node_modules/onnxruntime-web/dist/ort.node.min.mjs"],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)  # fmt: skip
        self.name = WEB.replace("@", " ")

    def run(self, model: Path, feeds: dict) -> dict:
        send = [{"name": n, "type": str(a.dtype), "shape": a.shape, "data": base64.b64encode(a.tobytes()).decode()} for n, a in feeds.items()]
        self.process.stdin.write(json.dumps({"model": str(model), "feeds": send}) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return {n: array(r) for n, r in answer["outputs"].items()}


class OpenVINO:
    def __init__(self):
        import openvino

        self.core, self.name = openvino.Core(), f"OpenVINO {openvino.__version__.split('-')[0]}"

    def run(self, model: Path, feeds: dict) -> dict:
        compiled = self.core.compile_model(self.core.read_model(model), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        out = compiled(feeds)
        return {n: a for port, a in out.items() for n in port.names}


class Apart:
    """A runtime in a process of its own, since it ends the process on some models."""

    def run(self, model: Path, feeds: dict) -> dict:
        here, there = multiprocessing.Pipe(duplex=False)
        child = multiprocessing.get_context("fork").Process(target=self.child, args=(there, model, feeds))
        child.start()
        there.close()
        try:
            answer = here.recv()
        except EOFError:
            raise RuntimeError("it ends the process") from None
        finally:
            child.join()
        if isinstance(answer, str):
            raise RuntimeError(answer)  # noqa: TRY004  it is the message
        return answer

    def child(self, pipe, model: Path, feeds: dict) -> None:
        for out in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), out)
        try:
            outputs = [o.name for o in onnx.load(model, load_external_data=False).graph.output]
            pipe.send(dict(zip(outputs, self.compute(model, feeds))))
        except Exception as e:  # noqa: BLE001  whatever it throws is its verdict
            pipe.send(str(e))


class Tract(Apart):
    def __init__(self):
        os.environ["RUST_BACKTRACE"] = "0"
        import tract

        self.tract, self.name = tract, f"tract {tract.version()}"

    def compute(self, model: Path, feeds: dict) -> list:
        short = {"float32": "f32", "float16": "f16", "int64": "i64", "float64": "f64"}
        m = self.tract.onnx().load(model)
        names = [m.input_name(i) for i in range(m.input_count())]
        for i, n in enumerate(names):
            m.set_input_fact(i, ",".join([*map(str, feeds[n].shape), short[str(feeds[n].dtype)]]))
        return [r.to_numpy() for r in m.into_model().into_runnable().run([feeds[n] for n in names])]


class TVM(Apart):
    def __init__(self):
        import tvm

        self.name = f"TVM {tvm.__version__}"

    def compute(self, model: Path, feeds: dict) -> list:
        import tvm
        from tvm import relax
        from tvm.relax.frontend.onnx import from_onnx

        mod = from_onnx(onnx.load(model), shape_dict={n: list(a.shape) for n, a in feeds.items()}, dtype_dict={n: str(a.dtype) for n, a in feeds.items()})
        names = [v.name for v in mod["main"].params]
        main = relax.VirtualMachine(tvm.compile(mod, target="llvm"), tvm.cpu())["main"]
        out = main(*[tvm.runtime.tensor(feeds[n]) for n in names])
        return [r.numpy() for r in ([out] if hasattr(out, "numpy") else out)]


RUNTIMES = {"onnxruntime": Native, "web": Web, "openvino": OpenVINO, "tract": Tract, "tvm": TVM}


def reason(e: Exception) -> str:
    """The shortest line that says what a runtime lacks."""
    lines = [part.strip() for part in str(e).replace("\\n", "\n").splitlines() if part.strip()]
    return (lines or [type(e).__name__])[-1][:140]


def verdict(runtime, model: Path, feeds: dict, want: dict, tolerance: float) -> str:
    """Empty where the runtime computes what is wanted."""
    try:
        have = runtime.run(model, feeds)
    except Exception as e:  # noqa: BLE001  whatever a runtime throws is its verdict
        return reason(e)
    for name, w in want.items():
        if name not in have or have[name].shape != w.shape:
            return f"{name} has another shape"
        off = np.abs(have[name].astype(float) - w).max() / max(np.abs(w).max(), 1e-30)
        if not off <= tolerance:
            return f"{name} is off by {off:.1g}"
    return ""


def operators(graph: onnx.GraphProto):
    for n in graph.node:
        yield f"{n.domain}.{n.op_type}" if n.domain else n.op_type
        for a in n.attribute:
            yield from operators(a.g) if a.HasField("g") else ()


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--program", default="gradhop")
    p.add_argument("--runtimes", default=",".join(RUNTIMES))
    p.add_argument("--networks", default=",".join(sorted(f.stem for f in ARCH.glob("*.json"))))
    a = p.parse_args()
    runtimes, missing = [RUNTIMES[r]() for r in a.runtimes.split(",")], collections.defaultdict(list)
    count, failed, names = collections.Counter(), collections.defaultdict(list), a.networks.split(",")
    with tempfile.TemporaryDirectory(dir=ARCH) as temp:  # a file may refer to weights in the folder
        for name in names:
            ref, original, gradient = json.loads((ARCH / f"{name}.json").read_text()), ARCH / f"{name}.onnx", Path(temp) / f"{name}.grad.onnx"
            subprocess.run([a.program, "grad", original, "--of", ref["of"], "--wrt", ",".join(ref["wrt"]), *["--reduce", "none"] * (ref["reduce"] == "none"),
                            "--weights", "own", "--quiet", "-o", gradient], check=True, capture_output=True)  # fmt: skip
            written = onnx.load(gradient)
            for op in sorted(set(operators(written.graph)) - set(MOBILE.split())):
                missing[op].append(name)
            feeds, output = {i["name"]: array(i) for i in ref["inputs"]}, {ref["of"]: array(ref["output"])}
            grads = output | dict(zip([o.name for o in written.graph.output][-len(ref["grads"]):], map(array, ref["grads"])))
            seed = {f"seed/{ref['of']}": array(ref["seed"])} if ref["seed"] else {}
            for r in runtimes:
                for what, file, fed, want in (("network", original, feeds, output), ("gradient", gradient, feeds | seed, grads)):
                    bad = verdict(r, file, fed, want, max(TOLERANCE, ref["tolerance"]))
                    count[r.name, what] += not bad
                    if bad:
                        failed[r.name, what, bad].append(name)
    print(f"| of {len(names)} networks | the network | its gradient file |\n| --- | --- | --- |")
    for r in runtimes:
        print(f"| {r.name} | {count[r.name, 'network']} | {count[r.name, 'gradient']} |")
    complete = len(names) - len({n for uses in missing.values() for n in uses})
    print(f"| onnxruntime-mobile, by its operators | | {complete} |\n")
    for (r, what, bad), which in failed.items():
        print(f"- {r}, {what}: {bad}: {', '.join(which)}")
    print("- onnxruntime-mobile lacks " + ", ".join(f"{op} ({len(which)})" for op, which in sorted(missing.items(), key=lambda i: -len(i[1]))))


if __name__ == "__main__":
    main()
