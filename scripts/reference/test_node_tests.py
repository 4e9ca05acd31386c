"""The standard's own tests, taken through the Go package onnx, give what they gave before.

The Python package onnx ships them: models of one operator, with inputs and expected outputs. The Go test
TestNodeTests writes each model again: as read (written), through the builder (built), in operator set 18
(upgraded) and simplified. The runtime then gets the original and all of these.
"""

import collections
import ctypes
import functools
import json
import os
import pathlib
import subprocess

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import numpy_helper
from onnxruntime.capi import onnxruntime_pybind11_state as state

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = pathlib.Path(onnx.__file__).parent / "backend/test/data"
FOLDERS = ("node", "simple", "pytorch-converted", "pytorch-operator")
# Old networks that list every weight as an input; their weights are constants, some of a gigabyte.
NETWORKS = ("densenet121", "inception_v1", "shufflenet", "squeezenet")
FORMS = ("written", "built", "upgraded", "simplified")
# The tolerances of the standard's own test runner.
RTOL, ATOL = 1e-3, 1e-7
RUNTIME_ERRORS = (state.Fail, state.NotImplemented, state.InvalidGraph, state.InvalidArgument, state.RuntimeException)


@functools.cache
def options():
    o = ort.SessionOptions()
    o.log_severity_level = 4
    o.intra_op_num_threads = 1
    # The runtime's own rewriting would hide, or make, differences.
    o.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return o


def load(path, kind):
    """The value in a file: an array, a list, None, or a TensorProto of a type that numpy lacks."""
    b = path.read_bytes()
    if kind.HasField("sequence_type"):
        return numpy_helper.to_list(onnx.SequenceProto.FromString(b))
    if kind.HasField("optional_type"):
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(b))
    t = onnx.TensorProto.FromString(b)
    return numpy_helper.to_array(t) if t.data_type in NUMPY else t


NAMES = ["FLOAT", "DOUBLE", "FLOAT16", "INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64", "BOOL", "STRING"]
NUMPY = [onnx.TensorProto.DataType.Value(k) for k in NAMES]
BITS = {"INT2": 2, "UINT2": 2, "INT4": 4, "UINT4": 4, "FLOAT4E2M1": 4, "BFLOAT16": 16}


def folder(kind, start, types):
    return [load(kind / f"{start}_{i}.pb", t.type) for i, t in enumerate(types) if (kind / f"{start}_{i}.pb").exists()]


def run(path, feeds):
    """The outputs of a model; those of a type that numpy lacks as bytes."""
    model = path.read_bytes()
    if any(isinstance(v, onnx.TensorProto) for v in feeds):
        model = constants(onnx.load_from_string(model), feeds)
        feeds = [v for v in feeds if not isinstance(v, onnx.TensorProto)]
    s = ort.InferenceSession(model, options(), providers=["CPUExecutionProvider"])
    # The runtime may write to its inputs: the running statistics of a batch normalisation.
    feeds = {i.name: np.array(v) if isinstance(v, np.ndarray) else v for i, v in zip(s.get_inputs(), feeds, strict=False)}
    names = [o.name for o in s.get_outputs()]
    if not any(odd(o.type) for o in s.get_outputs()):
        return s.run(names, feeds)
    out = s.run_with_ort_values(names, {k: ort.OrtValue.ortvalue_from_numpy(v) for k, v in feeds.items()})
    return [raw(o) if odd(o.data_type()) else o.numpy() for o in out]


def odd(kind):
    return any(w in kind for w in ("float8", "float4", "int4", "int2)", "bfloat16"))


def raw(value):
    kind = onnx.TensorProto.DataType.Name(value.element_type())
    size = (int(np.prod(value.shape())) * BITS.get(kind, 8) + 7) // 8
    return np.frombuffer(ctypes.string_at(value.data_ptr(), size), np.uint8)


def constants(model, feeds):
    """The model with the inputs that numpy has no type for as initialisers."""
    for i, v in reversed(list(enumerate(feeds))):
        if isinstance(v, onnx.TensorProto):
            t = model.graph.initializer.add()
            t.CopyFrom(v)
            t.name = model.graph.input[i].name
            del model.graph.input[i]
    return model.SerializeToString()


def same(a, b):
    """Equal to the bit, but for the nature of a NaN."""
    if isinstance(a, list) or isinstance(b, list):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) or a is None or b is None:
        return a == b
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    return bool(np.all((a == b) | (nan(a) & nan(b))))


def nan(a):
    return np.isnan(a) if a.dtype.kind == "f" else np.zeros(a.shape, bool)


def nearly(a, b):
    """Equal, halves to one unit in the last place.

    The runtime computes many of them in single precision and drops casts between two such operators; what Simplify
    takes out changes which.
    """
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.dtype == b.dtype == np.float16 and a.shape == b.shape:
        with np.errstate(invalid="ignore"):
            return bool(np.all((np.abs(a - b) <= np.spacing(np.maximum(np.abs(a), np.abs(b)))) | (a == b) | (nan(a) & nan(b))))
    return same(a, b)


def close(a, b):
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(close, a, b))
    if a is None or b is None or isinstance(a, dict):
        return a == b
    if isinstance(b, onnx.TensorProto):
        return a.tobytes() == (b.raw_data or np.array(b.int32_data, np.uint8 if BITS.get(onnx.TensorProto.DataType.Name(b.data_type), 8) < 16 else np.uint16).tobytes())
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape:
        return False
    if a.dtype.kind in "OSU" or b.dtype.kind in "OSU":
        return bool(np.all(a == b))
    return np.allclose(a.astype(np.float64), b.astype(np.float64), rtol=RTOL, atol=ATOL, equal_nan=True)


def shape_error(inferred, outputs, names):
    """What inference says against what the run gave; a name has one size in a test."""
    sizes = {}
    for name, y in zip(names, outputs, strict=True):
        info = inferred.get(name)
        if info is None or not isinstance(y, np.ndarray) or info["elem"] not in (0, *NUMPY):
            continue
        stated = onnx.helper.tensor_dtype_to_np_dtype(info["elem"]) if info["elem"] else None
        if stated is not None and y.dtype.kind in "fiub" and stated.kind in "fiub" and stated != y.dtype:
            return f"{name} was inferred as {stated}, the run gives {y.dtype}"
        if not info["known"]:
            continue
        if len(info["shape"]) != y.ndim:
            return f"{name} was inferred as {info['shape']}, the run gives {y.shape}"
        for d, n in zip(info["shape"], y.shape, strict=True):
            if sizes.setdefault(d, n) != n or (isinstance(d, int) and d != n):
                return f"{name} was inferred as {info['shape']}, the run gives {y.shape}"
    return None


@pytest.fixture(scope="module")
def forms(tmp_path_factory):
    """The folder with the models that the Go test wrote."""
    out = tmp_path_factory.mktemp("forms")
    env = os.environ | {"GRADHOP_ONNX_NODE_TESTS": os.pathsep.join(str(DATA / f) for f in (*FOLDERS, "light")), "GRADHOP_ONNX_OUT": str(out)}
    r = subprocess.run(["go", "test", "./onnx", "-run", "^TestNodeTests$", "-count=1", "-v"], cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert r.returncode == 0, "\n".join(line for line in (r.stdout + r.stderr).splitlines() if "PASS" not in line and "RUN" not in line)[-4000:]
    return out


def one(test, forms, count):
    """Runs the forms of one test; returns what is wrong."""
    model = onnx.load(test / "model.onnx")
    try:
        data = [(folder(d, "input", model.graph.input), folder(d, "output", model.graph.output)) for d in sorted(test.glob("test_data_set_*"))]
        results = [(feeds, want, run(test / "model.onnx", feeds)) for feeds, want in data]
    except RUNTIME_ERRORS as e:
        return skip(count, str(e)) + upgraded_alone(test, forms, count)
    count["run"] += 1
    wrong = []
    passes = all(len(want) == len(got) and all(map(close, got, want)) for _, want, got in results)
    count["as expected"] += passes
    steady = all(all(map(same, run(test / "model.onnx", feeds), got)) for feeds, _, got in results)
    count["random"] += not steady
    inferred = json.loads((forms / test.name / "inferred.json").read_text())
    for _, _, got in results:
        if e := shape_error(inferred, got, [o.name for o in model.graph.output]):
            wrong.append(e)
    for form in FORMS:
        path = forms / test.name / f"{form}.onnx"
        if not path.exists():
            continue
        try:
            again = [run(path, feeds) for feeds, _, _ in results]
        except RUNTIME_ERRORS as e:
            wrong.append(f"{form}: {e}"[:400])
            continue
        count[form] += 1
        for (_, want, got), ours in zip(results, again, strict=True):
            equal = nearly if form == "simplified" else same
            if steady and not (len(got) == len(ours) and all(map(equal, got, ours))):
                wrong.append(f"{form}: other outputs")
            if steady and passes and not all(map(close, ours, want)):
                wrong.append(f"{form}: not what the test expects")
    return wrong


def upgraded_alone(test, forms, count):
    """What is wrong with the upgraded form of a model that the runtime lacks: it must give what the test expects."""
    path = forms / test.name / "upgraded.onnx"
    if not path.exists():
        return []
    model, form = onnx.load(test / "model.onnx"), onnx.load(path)
    wrong = []
    try:
        for d in sorted(test.glob("test_data_set_*")):
            got = run(path, folder(d, "input", form.graph.input))
            if not all(map(close, got, folder(d, "output", model.graph.output))):
                wrong.append(f"{test.name}: upgraded, which alone runs: not what the test expects")
    except RUNTIME_ERRORS:
        return []
    count["upgraded, which alone runs"] += 1
    return wrong


def skip(count, reason):
    count["not run by the runtime"] += 1
    count[f"  {reason.splitlines()[0][:100]}"] += 1
    return []


def test_all_forms_give_the_same(forms, capsys):
    count, wrong = collections.Counter(), []
    tests = [t for f in FOLDERS for t in sorted((DATA / f).iterdir()) if (t / "model.onnx").exists()]
    for t in tests:
        wrong += [f"{t.name}: {w}" for w in one(t, forms, count)]
    with capsys.disabled():
        print(f"\n{len(tests)} tests of the standard; " + ", ".join(f"{k} {v}" for k, v in count.items() if k[0] != " "))
        if os.environ.get("GRADHOP_VERBOSE"):
            print("\n".join(f"{v:5}{k}" for k, v in sorted(count.items()) if k[0] == " "))
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong[:50])
    assert count["run"] >= 1690
    assert count["upgraded, which alone runs"] >= 30


@pytest.mark.parametrize("name", NETWORKS)
def test_whole_networks(forms, name):
    path = DATA / "light" / f"light_{name}.onnx"
    x = np.random.default_rng(1).standard_normal((1, 3, 224, 224), np.float32)
    want = run(path, [x])
    for form in FORMS:
        again = run(forms / path.stem / f"{form}.onnx", [x])
        assert all(map(same, again, want)), form
