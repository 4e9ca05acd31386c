"""Small ONNX files for the tests of the Go package onnx, made by the reference implementation.

    onnx_fixtures.py            write onnx/testdata
    onnx_fixtures.py --check    regenerate in memory; exit 1 if a file differs

kinds     every kind of attribute, type and annotation, a Loop
typed     one tensor of every element type in its typed data field; raw: the same in raw_data
unpacked  float and integer data as single fields, in another order than ours
outside   two tensors in outside.bin
branches  an If whose branches read the enclosing graph
local     a model-local function with an attribute reference
half      float16 weights: stored and cast back, computed with, in a branch and a function
sparse    a sparse initialiser, which the Go package refuses
"""


import ml_dtypes
import numpy as np
import onnx
import stored
from onnx import TensorProto, helper, numpy_helper

FOLDER = "onnx/testdata"
MADE_BY = "scripts/reference/onnx_fixtures.py"
VALUES = [0, 1, 2, 3, 5, 7]
TYPED = ("float_data", "int32_data", "int64_data", "double_data", "uint64_data")


def value(name, elem=TensorProto.FLOAT, shape=(2, 3)):
    return helper.make_tensor_value_info(name, elem, shape)


def model(graph, functions=(), **fields):
    """A model of opset 21 that says where it is from."""
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("test", 1)]
    m = helper.make_model(graph, opset_imports=opsets, functions=functions, ir_version=10, **fields)
    m.producer_name, m.producer_version = "onnx_fixtures.py", "1"
    return m


def entry(holder, key, text):
    e = holder.metadata_props.add()
    e.key, e.value = key, text


def loop():
    """A Loop that doubles its state, read from the enclosing graph."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["going"], ["on"]), helper.make_node("Add", ["state", "x"], ["next"])],
        "body",
        [value("turn", TensorProto.INT64, ()), value("going", TensorProto.BOOL, ()), value("state")],
        [value("on", TensorProto.BOOL, ()), value("next")],
    )
    return helper.make_node("Loop", ["trips", "", "x"], ["looped"], name="loop", body=body)


def kinds():
    tensor = numpy_helper.from_array(np.array([1.5, -2.5], "f4"), "t")
    sparse = helper.make_sparse_tensor(tensor, helper.make_tensor("i", TensorProto.INT64, [2], [1, 3]), [5])
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["inner"])], "g", [], [value("inner")])
    seq = helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT16, ["n", None]))
    node = helper.make_node(
        "Everything", ["x", "", "w"], ["y", "", "z"], name="all kinds", domain="test", doc_string="documented",
        f=1.25, i=-3, s="text", t=tensor, g=graph, floats=[0.5, -0.5], ints=[-1, 0, 1], strings=["a", "", "b"],
        tensors=[tensor, tensor], graphs=[graph], sparse=sparse, type=seq, types=[seq, seq],
        zero_f=0.0, zero_i=0, zero_s="",
    )  # fmt: skip
    node.attribute.append(helper.make_attribute("no_ints", [], attr_type=onnx.AttributeProto.INTS))
    node.attribute[0].doc_string = "about f"
    node.overload = "variant"
    entry(node, "origin", "layer 1")
    typed = [helper.make_value_info("sequence", seq), helper.make_value_info("optional", helper.make_optional_type_proto(seq))]
    x = value("x", shape=("batch", 3))
    x.type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
    x.type.denotation = "TENSOR"
    x.doc_string = "the input"
    entry(x, "unit", "none")
    unknown = onnx.ValueInfoProto(name="nothing known")
    rank = helper.make_tensor_value_info("any rank", TensorProto.INT32, None)
    scalar = helper.make_tensor_value_info("scalar", TensorProto.DOUBLE, [])
    trips = value("trips", TensorProto.INT64, ())
    g = helper.make_graph(
        [node, loop()], "kinds", [x, trips], [value("y", shape=("batch", None)), value("looped")],
        [numpy_helper.from_array(np.array(-7), "w")], "graph text", [*typed, unknown, rank, scalar],
    )  # fmt: skip
    entry(g, "made", "by hand")
    g.quantization_annotation.add().tensor_name = "w"
    m = model(g, domain="org.example", model_version=4, doc_string="model text")
    helper.set_model_props(m, {"author": "nobody", "empty": "", "licence": "none"})
    return m


def numbers(elem):
    """VALUES as an array of the numpy type of elem."""
    if elem == TensorProto.STRING:
        return np.array([str(v).encode() for v in VALUES], dtype=object)
    dtype = helper.tensor_dtype_to_np_dtype(elem)
    if dtype == np.bool_:
        return np.array(VALUES) % 2 == 1
    list_ = [min(v, 3) for v in VALUES] if "UINT2" in TensorProto.DataType.Name(elem) else VALUES
    signed = np.issubdtype(dtype, np.signedinteger) or np.issubdtype(dtype, np.floating) or dtype == ml_dtypes.bfloat16
    return np.array([-v for v in list_] if signed else list_).astype(dtype)


def typed(raw):
    """A tensor of every element type, its data in raw_data or in the typed field."""
    tensors = []
    for elem in sorted(v for v in TensorProto.DataType.values() if 0 < v <= TensorProto.INT4):
        name = TensorProto.DataType.Name(elem).lower()
        t = numpy_helper.from_array(numbers(elem).reshape(2, 3), name)
        if not raw and elem != TensorProto.STRING:
            t = untyped(t)
        tensors.append(t)
    return model(helper.make_graph([], "typed", [], [value("float")], tensors))


def untyped(t):
    """Moves raw_data into the typed field that onnx.proto names."""
    field = helper.tensor_dtype_to_field(t.data_type)
    wide = {"float_data": "<f4", "double_data": "<f8", "int64_data": "<i8"}
    size = {"UINT32": "<u4", "UINT64": "<u8", "INT32": "<i4", "INT16": "<i2", "UINT16": "<u2", "INT8": "i1"}
    sixteen = t.data_type in (TensorProto.FLOAT16, TensorProto.BFLOAT16)
    kind = wide.get(field) or size.get(TensorProto.DataType.Name(t.data_type)) or ("<u2" if sixteen else "u1")
    data = np.frombuffer(t.raw_data, kind).tolist()
    t.ClearField("raw_data")
    getattr(t, field).extend(data)
    return t


def part(number, body):
    """A length-delimited field of fewer than 16,384 bytes."""
    tag = [number << 3 | 2] if number < 16 else [number << 3 & 0x7F | 2 | 0x80, number >> 4]
    size = [len(body)] if len(body) < 128 else [len(body) & 0x7F | 0x80, len(body) >> 7]
    return bytes(tag + size) + body


def unpacked():
    """Bytes that our encoder never writes: single numbers, data first, unknown fields."""
    floats = b"".join(b"\x25" + np.float32(v).tobytes() for v in (1.5, -2.5))
    ints = bytes([0x28, 3, 0x2A, 2, 4, 5, 0x28, 6])  # one, two packed, one
    tensors = [floats + bytes([0x10, 1, 0x0A, 1, 2]) + part(8, b"f"), ints + bytes([0x10, 3, 0x08, 2, 0x08, 2]) + part(8, b"i")]
    m = model(helper.make_graph([], "unpacked", [], [value("f", shape=(2,))]))
    graph = m.graph.SerializeToString() + b"".join(part(5, t) for t in tensors)
    m.ClearField("graph")
    b = part(1007, b"abc") + m.SerializeToString() + part(7, graph)
    f, i = onnx.ModelProto.FromString(b).graph.initializer
    assert list(f.float_data) == [1.5, -2.5] and list(i.int32_data) == [3, 4, 5, 6] and i.dims == [2, 2]
    return b


def external(name, elem, dims, **place):
    t = onnx.TensorProto(name=name, data_type=elem, dims=dims, data_location=TensorProto.EXTERNAL)
    for k, v in place.items():
        e = t.external_data.add()
        e.key, e.value = k, str(v)
    return t


def outside():
    tensors = [
        external("a", TensorProto.FLOAT, [2, 3], location="outside.bin", offset=8, length=24, checksum="none"),
        external("b", TensorProto.INT64, [2], location="outside.bin", offset=32),
        external("all", TensorProto.UINT8, [48], location="outside.bin"),
    ]
    nodes = [helper.make_node("Add", ["x", "a"], ["y"])]
    data = b"\xff" * 8 + np.array(VALUES, "<f4").tobytes() + np.array([-1, 1 << 40], "<i8").tobytes()
    return model(helper.make_graph(nodes, "outside", [value("x")], [value("y")], tensors)), data


def branches():
    def branch(op, name):
        return helper.make_graph([helper.make_node(op, ["h", "w"], [name])], op, [], [value(name)])

    nodes = [
        helper.make_node("Relu", ["x"], ["h"]),
        helper.make_node("If", ["c"], ["y"], name="choose", then_branch=branch("Add", "p"), else_branch=branch("Mul", "q")),
    ]
    w = numpy_helper.from_array(np.array([1, 2, 3], "f4"), "w")
    return model(helper.make_graph(nodes, "branches", [value("x"), value("c", TensorProto.BOOL, ())], [value("y")], [w]))


def local():
    ref = onnx.AttributeProto(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT)
    leak = helper.make_node("LeakyRelu", ["a"], ["b"])
    leak.attribute.append(ref)
    f = helper.make_function(
        "test", "Leak", ["a"], ["b"], [leak], [helper.make_opsetid("", 21)], ["slope"], [helper.make_attribute("bias", 0.5)]
    )
    f.doc_string = "a leaky one"
    f.ClearField("overload")
    nodes = [helper.make_node("Leak", ["x"], ["y"], domain="test", slope=0.25)]
    return model(helper.make_graph(nodes, "local", [value("x")], [value("y")]), [f])


def half():
    f16 = TensorProto.FLOAT16
    stored = numpy_helper.from_array(np.array([[0.1, -2, 3e4], [1e-7, 0, -0.0]], "f2"), "stored")
    used = numpy_helper.from_array(np.array([1, 0.5, -0.25], "f2"), "used")
    brain = numpy_helper.from_array(np.array([1, 3.140625, -2], ml_dtypes.bfloat16), "brain")
    ten = numpy_helper.from_array(np.array([10], "f2"))

    def branch(op, name):
        nodes = [
            helper.make_node("Cast", ["stored"], [name + "_w"], to=TensorProto.FLOAT),
            helper.make_node(op, ["wide", name + "_w"], [name]),
        ]
        return helper.make_graph(nodes, op, [], [value(name)])

    f = helper.make_function(
        "test", "Scale", ["a"], ["b"],
        [helper.make_node("Constant", [], ["c"], value=ten), helper.make_node("Mul", ["a", "c"], ["b"])],
        [helper.make_opsetid("", 21)],
    )  # fmt: skip
    nodes = [
        helper.make_node("Cast", ["stored"], ["wide"], name="dequantise", to=TensorProto.FLOAT),
        helper.make_node("Add", ["x", "wide"], ["sum"]),
        helper.make_node("Cast", ["sum"], ["narrow"], to=f16),
        helper.make_node("Mul", ["narrow", "used"], ["product"]),
        helper.make_node("Scale", ["product"], ["scaled"], domain="test"),
        helper.make_node("Shape", ["scaled"], ["shape"]),
        helper.make_node("ConstantOfShape", ["shape"], ["tens"], value=ten),
        helper.make_node("Sub", ["scaled", "tens"], ["z"]),
        helper.make_node("Cast", ["brain"], ["as_output"], to=TensorProto.FLOAT),
        helper.make_node("If", ["c"], ["y"], then_branch=branch("Add", "p"), else_branch=branch("Mul", "q")),
    ]
    return model(
        helper.make_graph(
            nodes, "half", [value("x"), value("c", TensorProto.BOOL, ())],
            [value("y"), value("z", f16), value("as_output", shape=(3,))], [stored, used, brain],
            value_info=[value("wide"), value("narrow", f16)],
        ),
        [f],
    )  # fmt: skip


def sparse():
    values = helper.make_tensor("w", TensorProto.FLOAT, [1], [2.0])
    w = helper.make_sparse_tensor(values, helper.make_tensor("i", TensorProto.INT64, [1], [4]), [2, 3])
    g = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "sparse", [value("x")], [value("y")])
    g.sparse_initializer.append(w)
    return model(g)


def fixtures():
    """Path below the repository to bytes."""
    outer, data = outside()
    models = {
        "kinds": kinds(), "typed": typed(False), "raw": typed(True), "outside": outer, "branches": branches(),
        "local": local(), "half": half(), "sparse": sparse(),
    }  # fmt: skip
    files = {f"{name}.onnx": m.SerializeToString(deterministic=True) for name, m in models.items()}
    files |= {"outside.bin": data, "unpacked.onnx": unpacked()}
    return {f"{FOLDER}/{name}": b for name, b in sorted(files.items())}


def main():
    args = stored.command_line(__doc__).parse_args()
    stored.finish(args.check, MADE_BY, fixtures())


if __name__ == "__main__":
    main()
