"""Reference values of the masked-language-model energies, by torch autograd in float64.

    bert_reference.py            write energies/neural/mlm/testdata/bert and .../bad
    bert_reference.py --check    regenerate; exit 1 if a value or a file is no longer what is stored

The formula shares nothing with the Go code: the blanks of a text are one-hot rows O [blank, word]
that require a gradient, the model reads O @ W in place of its word embeddings W[ids], and U is summed from
its output as the definition says. bert/<case>/model.onnx are exports of the same tiny weights.
"""

from __future__ import annotations

import base64
import copy
import json
import pathlib
import sys

import numpy as np
import onnx
import stored
import torch
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import export_bert

FOLDER = stored.ROOT / "energies/neural/mlm/testdata"
TOLERANCE = 1e-6  # of the largest value: what is stored is rounded to float32
ENERGIES = ["pll/mask", "pll/zero", "pll-raw/mask", "pll-raw/zero", "mrf/mask"]
VOCAB = 80
MASK, CLS, SEP, FIRST = 6, 4, 5, 7  # in export_bert.made_up_vocabulary(80)

# name: how it is exported
CASES = {
    "legacy-11": {"opset": 11, "attention": "eager"},
    "legacy-14": {"opset": 14, "attention": "eager"},
    "legacy-14-sdpa": {"opset": 14, "attention": "sdpa"},
    "legacy-17-sdpa": {"opset": 17, "attention": "sdpa"},
    "legacy-17-int32-no-types": {"opset": 17, "attention": "eager", "ids": torch.int32, "types": False},
    "dynamo-18": {"opset": 18, "attention": "sdpa", "exporter": "dynamo"},
    "dynamo-20": {"opset": 20, "attention": "sdpa", "exporter": "dynamo"},
}
# The same with weights rounded to float16.
HALF_CASES = {
    "float16": {"opset": 17, "attention": "eager", "dtype": "float16"},
    "float16-weights": {"opset": 14, "attention": "sdpa", "dtype": "float16-weights"},
}


def tiny(layers=2, attention="eager"):
    return export_bert.random_model(VOCAB, 16, layers, 4, 32, seed=1, attention=attention, inner=32)


def halved(attention="eager"):
    """One layer whose weights are float16 numbers."""
    model = tiny(1, attention)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(p.half().float())
    return model


def texts(vocab: int, cls: int, sep: int, first: int, shape: list[tuple[int, list[int], int]], seed=2) -> list[dict]:
    """Random texts; shape lists their (length, blanks, fillings). Blanks hold the id 0."""
    rng = np.random.default_rng(seed)
    out = []
    for length, blanks, fillings in shape:
        ids = [cls, *rng.integers(first, vocab, length - 2).tolist(), sep]
        for p in blanks:
            ids[p] = 0
        fills = rng.integers(first, vocab, (fillings, len(blanks))).tolist()
        out.append({"ids": ids, "blanks": blanks, "fillings": fills})
    return out


TEXTS = texts(VOCAB, CLS, SEP, FIRST, [(5, [2], 2), (9, [1, 7], 3), (12, [3, 4, 8], 1), (24, [2, 7, 8, 20], 2)])


def energy(model, text: dict, filling: list[int], name: str, mask: int):
    """U and its gradient [blank, word] at one filling, and the scores that a blank's words have."""
    form, embedding = name.split("/")
    words = model.get_input_embeddings()
    table = words.weight.detach()
    blanks = text["blanks"]
    one_hot = torch.nn.functional.one_hot(torch.tensor(filling), len(table)).to(table.dtype).requires_grad_()
    variants = [None] if form == "mrf" else range(len(blanks))
    u, scores = 0.0, []
    for masked in variants:
        ids = torch.tensor(text["ids"])
        ids[blanks] = torch.tensor(filling)
        rows = list(table[ids])
        for i, p in enumerate(blanks):
            rows[p] = one_hot[i] @ table
        if masked is not None:
            ids[blanks[masked]] = mask  # some models count the masks
            rows[blanks[masked]] = table[mask] if embedding == "mask" else torch.zeros_like(table[mask])
        hook = words.register_forward_hook(lambda *_, rows=rows: torch.stack(rows)[None])
        logits = model(input_ids=ids[None], attention_mask=torch.ones_like(ids)[None]).logits[0]
        hook.remove()
        for i in range(len(blanks)) if masked is None else [masked]:
            s = logits[blanks[i]]
            if form == "pll":
                s = torch.log_softmax(s, dim=0)
            u = u + one_hot[i] @ s
            scores.append(s.detach())
    (grad,) = torch.autograd.grad(u, one_hot)
    return u.item(), grad, torch.stack(scores)


def pack(rows: list) -> str:
    """Little-endian float32 in base64: a tenth of the digits."""
    return base64.b64encode(torch.stack(rows).numpy().astype("<f4").tobytes()).decode()


def unpack(text: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), "<f4")


def reference(model, models: list[str], texts: list[dict], mask: int, energies=ENERGIES) -> dict:
    """What reference.json holds; grad and scores are [filling, blank, word]."""
    double = copy.deepcopy(model).double()
    for p in double.parameters():
        p.requires_grad_(False)
    out = []
    for text in texts:
        values = {}
        for name in energies:
            got = [energy(double, text, f, name, mask) for f in text["fillings"]]
            values[name] = {"u": [u for u, _, _ in got], "grad": pack([g for _, g, _ in got])}
            if not name.startswith("pll-raw"):  # whose scores are those of pll before the softmax
                values[name]["scores"] = pack([s for _, _, s in got])
        out.append({**text, "values": values})
    return {"vocabulary": double.config.vocab_size, "mask_id": mask, "models": models, "texts": out}


def bad_model(rows=12, columns=12, operator="Tanh", domain="", dims=("batch", "sequence")) -> bytes:
    """An embedding, one operator and a decoder: the least that can be wrong in one way."""
    rng = np.random.default_rng(3)
    weights = {"table": rng.standard_normal((rows, 4)), "decoder": rng.standard_normal((4, columns))}
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["embedded"], name="words"),
        helper.make_node(operator, ["embedded"], ["hidden"], name="strange", domain=domain or None),
        helper.make_node("MatMul", ["hidden", "decoder"], ["logits"], name="decode"),
    ]
    graph = helper.make_graph(
        nodes, "bad",
        [helper.make_tensor_value_info("input_ids", TensorProto.INT64, dims)],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [*dims, columns])],
        [numpy_helper.from_array(w.astype("f4"), n) for n, w in weights.items()],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 14), *([helper.make_opsetid(domain, 3)] if domain else [])]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


BAD = {
    "vocabulary": {"columns": 10},
    "operator": {"operator": "Binarizer", "domain": "ai.onnx.ml"},
    "fixed": {"dims": (2, 7)},
    "good": {},
}


def write(folder: pathlib.Path) -> None:
    """Writes every fixture below folder."""
    for weights, cases, base in (("", CASES, tiny), ("-float16", HALF_CASES, halved)):
        for name, how in cases.items():
            how = dict(how)
            model = base(attention=how.pop("attention"))
            (folder / "bert" / name).mkdir(parents=True, exist_ok=True)
            export_bert.export(model, str(folder / "bert" / name / "model.onnx"), **how)
        chosen = TEXTS if base is tiny else TEXTS[1:3]
        values = reference(base(), list(cases), chosen, MASK)
        (folder / "bert" / f"reference{weights}.json").write_text(json.dumps(values, indent=0) + "\n")
    (folder / "bad").mkdir(exist_ok=True)
    for name, how in BAD.items():
        (folder / "bad" / f"{name}.onnx").write_bytes(bad_model(**how))


def far(a, b) -> bool:
    a, b = np.asarray(a, "f8"), np.asarray(b, "f8")
    return a.shape != b.shape or bool(np.abs(a - b).max(initial=0) > TOLERANCE * np.abs(b).max(initial=1e-30))


def same_model(a: pathlib.Path, b: pathlib.Path) -> bool:
    """The same graph, with weights that agree to the tolerance."""
    x, y = onnx.load(a), onnx.load(b)
    for t, v in zip(x.graph.initializer, y.graph.initializer, strict=False):
        if t.name != v.name or far(numpy_helper.to_array(t).astype("f8"), numpy_helper.to_array(v).astype("f8")):
            return False
    sizes = len(x.graph.initializer), len(y.graph.initializer)
    for m in (x, y):
        m.graph.ClearField("initializer")
    return sizes[0] == sizes[1] and x == y



def same_values(a: pathlib.Path, b: pathlib.Path) -> bool:
    """The same texts and fillings, with values that agree to the tolerance."""
    old, new = json.loads(a.read_text()), json.loads(b.read_text())
    values = [[t.pop("values") for t in r["texts"]] for r in (old, new)]
    if old != new or [list(v) for v in values[0]] != [list(v) for v in values[1]]:
        return False
    for x, y in zip(*values, strict=True):
        for name in x:
            if far(x[name]["u"], y[name]["u"]) or x[name].keys() != y[name].keys():
                return False
            if any(far(unpack(x[name][k]), unpack(y[name][k])) for k in x[name] if k != "u"):
                return False
    return True


SAME = {".onnx": same_model, ".json": same_values}


def main() -> None:
    stored.finish_folder(stored.command_line(__doc__).parse_args().check, "scripts/reference/bert_reference.py", FOLDER, write, SAME)


if __name__ == "__main__":
    main()
