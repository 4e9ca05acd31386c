"""Exports a BERT masked language model to ONNX, as a folder in the Hugging Face layout.

    export_bert.py --out DIR --model NAME_OR_DIR             a BertForMaskedLM of yours
    export_bert.py --out DIR [--vocab 30522 --layers 12 ...]  random weights, a made-up vocabulary

Writes model.onnx, config.json, the tokenizer's files and, with --weights, model.safetensors.
Inputs input_ids, attention_mask and token_type_ids [batch, sequence], output logits
[batch, sequence, vocabulary]; batch and sequence stay open.
"""

from __future__ import annotations

import argparse
import itertools
import pathlib
import warnings

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from transformers import AutoTokenizer, BertConfig, BertForMaskedLM, BertTokenizerFast

INPUTS = ["input_ids", "attention_mask", "token_type_ids"]
LAST_SPECIAL = "[MASK]"


class Logits(torch.nn.Module):
    """The model with the inputs in the order of the file and logits as its only output."""

    def __init__(self, model: torch.nn.Module, types: bool = True) -> None:
        super().__init__()
        self.model = model
        if not types:
            self.forward = self.without_types

    def forward(self, input_ids, attention_mask, token_type_ids):
        return self.model(input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids).logits

    def without_types(self, input_ids, attention_mask):
        return self.model(input_ids=input_ids, attention_mask=attention_mask).logits


def random_model(
    vocab=30522, hidden=768, layers=12, heads=12, positions=512, seed=0, scale=1.0, attention="sdpa", inner=None
):  # fmt: skip
    """A BertForMaskedLM whose random weights give logits a few nats apart.

    transformers' own initialisation (0.02 everywhere) leaves the output nearly independent of the
    input: gradients would be noise. numpy draws the numbers, alike on every machine.
    """
    config = BertConfig(
        vocab_size=vocab, hidden_size=hidden, num_hidden_layers=layers, num_attention_heads=heads,
        intermediate_size=inner or 4 * hidden, max_position_embeddings=positions, attn_implementation=attention,
    )  # fmt: skip
    with torch.device("meta"):
        model = BertForMaskedLM(config)
    model = model.to_empty(device="cpu").eval()
    rng = np.random.default_rng(seed)
    seen = set()
    with torch.no_grad():
        for name, p in sorted(model.named_parameters(remove_duplicate=False)):
            if p.data_ptr() in seen:
                continue
            seen.add(p.data_ptr())
            z = rng.standard_normal(tuple(p.shape), dtype=np.float32)
            if "embeddings" in name and p.dim() == 2:
                z *= 3 * scale / hidden**0.5  # tied to the decoder: logits of size 3
            elif p.dim() == 2:
                z *= scale / p.shape[1] ** 0.5
            else:
                z = z * np.float32(0.1 * scale) + np.float32("LayerNorm.weight" in name)
            p.copy_(torch.from_numpy(z))
        for name, b in model.named_buffers():
            b.copy_(torch.arange(positions)[None] if name.endswith("position_ids") else torch.zeros_like(b))
    model.tie_weights()
    return model


def made_up_vocabulary(size: int) -> list[str]:
    """BERT's special tokens in BERT's order, then words; every eighth is a word piece."""
    unused = [f"[unused{i}]" for i in range(99 if size > 1000 else 2)]
    special = ["[PAD]", *unused, "[UNK]", "[CLS]", "[SEP]", LAST_SPECIAL]
    syllables = [c + v for c in "bdfghklmnprstvz" for v in "aeiou"]
    words = ("".join(w) for n in itertools.count(1) for w in itertools.product(syllables, repeat=n))
    pieces = (("##" if i % 8 == 7 else "") + w for i, w in enumerate(words))
    return special + list(itertools.islice(pieces, size - len(special)))


def load_model(source: str, attention: str | None = None):
    """A Hugging Face model, or a folder of this project whose weights are in model.onnx alone."""
    extra = {"attn_implementation": attention} if attention else {}
    folder = pathlib.Path(source)
    weights = ["model.safetensors", "pytorch_model.bin"]
    if not (folder / "model.onnx").is_file() or any((folder / w).is_file() for w in weights):
        return BertForMaskedLM.from_pretrained(source, **extra).eval()
    config = BertConfig.from_pretrained(source, **extra)
    model = BertForMaskedLM(config).eval()
    stored = onnx.load(folder / "model.onnx").graph.initializer
    state = {t.name.removesuffix(".f16"): torch.from_numpy(numpy_helper.to_array(t).astype("f4")) for t in stored}
    state |= {n.removesuffix(".i8"): p * state[n.removesuffix("i8") + "scale"] for n, p in state.items() if n.endswith(".i8")}
    known = {n: p for n, p in state.items() if n in model.state_dict()}
    missing, _ = model.load_state_dict(known, strict=False)
    model.tie_weights()
    lost = [n for n in missing if "decoder" not in n and "position_ids" not in n]
    if lost:
        raise SystemExit(f"export_bert: {folder}/model.onnx lacks {lost[0]} and {len(lost) - 1} other weights of BertForMaskedLM")
    return model


def strip(m: onnx.ModelProto) -> None:
    """Removes what the exporter noted about the machine it ran on: stack traces with its paths."""
    graphs = [m.graph, *m.functions]
    for holder in [m, m.graph, *m.functions, *m.graph.value_info, *m.graph.input, *m.graph.output, *m.graph.initializer]:
        holder.ClearField("doc_string")
        if hasattr(holder, "metadata_props"):
            holder.ClearField("metadata_props")
    for node in itertools.chain.from_iterable(g.node for g in graphs):
        node.ClearField("doc_string")
        node.ClearField("metadata_props")


def store_half(m: onnx.ModelProto) -> None:
    """Stores float32 weights as float16, each followed by a Cast; arithmetic stays float32."""
    casts = []
    for t in m.graph.initializer:
        if t.data_type != TensorProto.FLOAT or not t.dims:
            continue
        name = t.name
        t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(t).astype("f2"), name + ".f16"))
        casts.append(helper.make_node("Cast", [name + ".f16"], [name], name=name + "/Cast", to=TensorProto.FLOAT))
    nodes = [*casts, *m.graph.node]
    del m.graph.node[:]
    m.graph.node.extend(nodes)


def export(model, path, opset=14, exporter="legacy", dtype="float32", types=True, ids=torch.int64) -> None:
    """Writes one ONNX file. dtype float16 computes in it, float16-weights only stores in it."""
    if dtype == "float16":
        model = model.half()
    names = INPUTS if types else INPUTS[:2]
    example = torch.ones((2, 7), dtype=ids)
    # In evaluation mode as a whole: the legacy exporter puts the mode it found back in every part.
    wrapped = Logits(model, types).eval()
    args = (example, example.clone(), torch.zeros_like(example))[: len(names)]
    common = {"input_names": names, "output_names": ["logits"], "opset_version": opset}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the legacy exporter's are about itself
        if exporter == "dynamo":
            last = model.config.max_position_embeddings
            # From 2 on, because tracing takes a dimension of 1 for one that broadcasts; the file runs with 1.
            dims = {0: torch.export.Dim("batch", min=2), 1: torch.export.Dim("sequence", min=2, max=last)}
            torch.onnx.export(wrapped, args, path, dynamo=True, dynamic_shapes=(dims,) * len(names),
                              external_data=False, verbose=False, **common)  # fmt: skip
        else:
            axes = {n: {0: "batch", 1: "sequence"} for n in [*names, "logits"]}
            torch.onnx.export(wrapped, args, path, dynamo=False, dynamic_axes=axes, **common)
    m = onnx.load(path)
    strip(m)
    if dtype == "float16-weights":
        store_half(m)
    pathlib.Path(path).write_bytes(m.SerializeToString(deterministic=True))


def write_folder(out: pathlib.Path, model, tokenizer=None, weights=False, **how) -> None:
    """Writes the Hugging Face folder; without a tokenizer the vocabulary is made up."""
    out.mkdir(parents=True, exist_ok=True)
    model.config.architectures = ["BertForMaskedLM"]
    if weights:
        model.save_pretrained(out)
    model.config.save_pretrained(out)
    if tokenizer is None:
        vocab = out / "vocab.txt"
        vocab.write_text("\n".join(made_up_vocabulary(model.config.vocab_size)) + "\n", encoding="utf-8")
        tokenizer = BertTokenizerFast(str(vocab), model_max_length=model.config.max_position_embeddings)
    tokenizer.save_pretrained(out)
    export(model, str(out / "model.onnx"), **how)


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", type=pathlib.Path, required=True, help="folder to write")
    p.add_argument("--model", help="a BertForMaskedLM: name on the hub, or folder; default: random weights")
    p.add_argument("--vocab", type=int, default=30522)
    p.add_argument("--hidden", type=int, default=768)
    p.add_argument("--layers", type=int, default=12)
    p.add_argument("--heads", type=int, default=12)
    p.add_argument("--positions", type=int, default=512)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--init-scale", type=float, default=1.0, help="factor on all random weights")
    p.add_argument("--opset", type=int, default=14, help="11 to 17 with the legacy exporter, 18 to 20 with dynamo")
    p.add_argument("--exporter", choices=["legacy", "dynamo"], default="legacy")
    p.add_argument("--attention", choices=["eager", "sdpa"], default="sdpa")
    p.add_argument("--dtype", choices=["float32", "float16", "float16-weights"], default="float32")
    p.add_argument("--weights", action="store_true", help="write model.safetensors too")
    a = p.parse_args()
    tokenizer = None
    if a.model:
        model, tokenizer = load_model(a.model, a.attention), AutoTokenizer.from_pretrained(a.model)
    else:
        model = random_model(a.vocab, a.hidden, a.layers, a.heads, a.positions, a.seed, a.init_scale, a.attention)
    write_folder(a.out, model, tokenizer, a.weights, opset=a.opset, exporter=a.exporter, dtype=a.dtype)
    size = (a.out / "model.onnx").stat().st_size
    print(f"{a.out / 'model.onnx'}: {size / 1e6:.1f} MB, opset {a.opset}, {a.exporter} exporter")


if __name__ == "__main__":
    main()
