"""Exports a masked language model of the Hugging Face Hub, or of a folder, to ONNX.

    export_mlm.py --model OWNER/NAME[@REVISION] --out DIR
    export_mlm.py --model FOLDER --out DIR

Writes model.onnx (with model.onnx_data where it exceeds 2 GB), config.json and the tokenizer's
files. Inputs are input_ids, attention_mask and, where the model has more than one token type,
token_type_ids [batch, sequence]; the output is logits [batch, sequence, vocabulary]. Batch and
sequence are dynamic. onnxruntime must equal PyTorch on batches of several sizes with padding,
or the export fails.

Tested with BERT, DistilBERT, ELECTRA, RoBERTa, XLM-R, CamemBERT, ALBERT, DeBERTa-v2 and -v3,
ModernBERT and ESM-2; see test_export_mlm.py.
"""

from __future__ import annotations

import argparse
import inspect
import pathlib
import re
import tempfile
import warnings

import numpy as np
import onnx
import onnxruntime
import torch
from transformers import AutoModelForMaskedLM, AutoTokenizer

try:
    from scripts.export_bert import store_half, strip
except ImportError:  # run as a file
    from export_bert import store_half, strip

LARGEST = 2**31 - 2**20  # bytes of a protobuf message, with room for the graph
UNUSED = re.compile(r"position_ids|pooler|contact_head")  # weights that logits do not depend on
TOLERANCE = 1e-3  # of logits, relative to the largest one


class Logits(torch.nn.Module):
    """The model with inputs by position and logits as its only output."""

    def __init__(self, model: torch.nn.Module, names: list[str]) -> None:
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *tensors):
        return self.model(**dict(zip(self.names, tensors, strict=True)), return_dict=True).logits


def load(source: str):
    """The model and the tokenizer; eager attention, because tracing it leaves all shapes dynamic."""
    name, _, revision = source.partition("@")
    if pathlib.Path(source).is_dir():
        name, revision = source, ""
    options = {"revision": revision} if revision else {}
    model, info = AutoModelForMaskedLM.from_pretrained(
        name, attn_implementation="eager", dtype=torch.float32, output_loading_info=True, **options
    )
    lost = [k for k in info["missing_keys"] if not UNUSED.search(k)]
    if lost:
        raise SystemExit(f"export_mlm: {source} has no weights for {lost[0]} and {len(lost) - 1} others: it is no masked language model")
    return model.eval(), AutoTokenizer.from_pretrained(name, **options)


def input_names(model) -> list[str]:
    """The inputs that have an effect, in the order of the file."""
    names = ["input_ids", "attention_mask"]
    takes = inspect.signature(model.forward).parameters
    if "token_type_ids" in takes and getattr(model.config, "type_vocab_size", 0) > 1:
        names.append("token_type_ids")
    return names


def batch(model, names: list[str], rows: int, length: int, seed: int) -> dict[str, torch.Tensor]:
    """Random ids; all rows but the first end with padding."""
    rng = np.random.default_rng(seed)
    padding = model.config.pad_token_id or 0
    ids = rng.integers(0, model.config.vocab_size, (rows, length))
    ids[ids == padding] = (padding + 1) % model.config.vocab_size
    mask = np.ones((rows, length), dtype=np.int64)
    for row in range(1, rows):
        end = max(1, length - row * 2)
        ids[row, end:], mask[row, end:] = padding, 0
    values = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    return {n: torch.from_numpy(values[n]) for n in names}


def export(model, path: pathlib.Path, opset: int = 17, dtype: str = "float32") -> float:
    """Writes the file and returns the largest difference of logits from PyTorch's, relative to the largest logit."""
    if getattr(model.config, "reference_compile", None):
        model.config.reference_compile = False  # ModernBERT would compile itself while it is traced
    names = input_names(model)
    wrapped = Logits(model, names).eval()
    example = tuple(batch(model, names, 2, 9, seed=0).values())
    axes = {n: {0: "batch", 1: "sequence"} for n in [*names, "logits"]}
    with tempfile.TemporaryDirectory(dir=path.parent) as temp, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of the exporter are about itself
        raw = pathlib.Path(temp) / "model.onnx"
        torch.onnx.export(wrapped, example, str(raw), input_names=names, output_names=["logits"], dynamic_axes=axes,
                          opset_version=opset, dynamo=False)  # fmt: skip
        m = onnx.load(raw)
    strip(m)
    if dtype == "float16-weights":
        store_half(m)
    data = path.with_name(path.name + "_data")
    data.unlink(missing_ok=True)
    large = sum(len(t.raw_data) for t in m.graph.initializer) > LARGEST
    onnx.save(m, path, save_as_external_data=large, location=data.name)
    return difference(model, names, path)


def difference(model, names: list[str], path: pathlib.Path) -> float:
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    worst = 0.0
    for seed, (rows, length) in enumerate([(1, 3), (1, 17), (3, 12), (5, 30)]):
        inputs = batch(model, names, rows, length, seed)
        with torch.no_grad():
            want = model(**inputs, return_dict=True).logits.numpy()
        (got,) = session.run(["logits"], {n: v.numpy() for n, v in inputs.items()})
        if got.shape != want.shape:
            raise SystemExit(f"export_mlm: logits have shape {got.shape}, not {want.shape}")
        kept = inputs["attention_mask"].numpy().astype(bool)  # what stands at padding is of no use
        worst = max(worst, float(np.abs(got - want)[kept].max() / np.abs(want[kept]).max()))
    return worst


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model", required=True, help="OWNER/NAME[@REVISION] on the hub, or a folder")
    p.add_argument("--out", type=pathlib.Path, required=True, help="folder to write")
    p.add_argument("--opset", type=int, default=17)
    p.add_argument("--dtype", choices=["float32", "float16-weights"], default="float32",
                   help="float16-weights halves the file; arithmetic stays float32")  # fmt: skip
    a = p.parse_args()
    model, tokenizer = load(a.model)
    a.out.mkdir(parents=True, exist_ok=True)
    path = a.out / "model.onnx"
    worst = export(model, path, a.opset, a.dtype)
    limit = TOLERANCE if a.dtype == "float32" else 1e-2
    if not worst < limit:
        path.unlink()
        raise SystemExit(f"export_mlm: logits differ from PyTorch's by {worst:.1e} of the largest one; the limit is {limit}")
    model.config.save_pretrained(a.out)
    tokenizer.save_pretrained(a.out)
    size = sum(f.stat().st_size for f in a.out.glob("model.onnx*"))
    print(f"{path}: {size / 1e6:.1f} MB, opset {a.opset}, logits equal PyTorch's within {worst:.1e}")


if __name__ == "__main__":
    main()
