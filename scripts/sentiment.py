"""Trains a small classifier of sentiment over the vocabulary of a masked language model, as a guide for gradhop infill.

    sentiment.py --positive pos.txt --negative neg.txt --model models/data/bert-books --out sentiment

The files have a text a line. Word embeddings begin as the leading principal components of the model's; a convolution over three tokens, its
largest values over the text and a linear layer give the logits. A tenth of the texts, drawn by the seed, is held out; the accuracy on it is
printed and written to config.json. The folder has model.onnx, config.json with id2label, and the model's tokenizer.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import random
import shutil
import warnings

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from transformers import AutoTokenizer

LABELS = ["negative", "positive"]


class Classifier(torch.nn.Module):
    def __init__(self, table: torch.Tensor, channels: int = 64) -> None:
        super().__init__()
        self.words = torch.nn.Embedding.from_pretrained(table, freeze=False)
        self.window = torch.nn.Conv1d(table.shape[1], channels, 3, padding=1)
        self.dropout = torch.nn.Dropout(0.5)
        self.out = torch.nn.Linear(channels, len(LABELS))

    def forward(self, input_ids, attention_mask):
        mask = attention_mask[:, :, None].to(self.words.weight.dtype)
        x = self.dropout(self.words(input_ids)) * mask
        h = torch.relu(self.window(x.transpose(1, 2))).transpose(1, 2) * mask
        return self.out(self.dropout(h.amax(1)))


def components(path: pathlib.Path, size: int, width: int) -> torch.Tensor:
    """The leading principal components of the word embeddings of an ONNX model, [word, width], of standard deviation 0.3."""
    model = onnx.load(path)
    tables = [numpy_helper.to_array(t).astype("f4") for t in model.graph.initializer if len(t.dims) == 2 and size in t.dims]
    table = next(t if t.shape[0] == size else t.T for t in tables)
    table = table - table.mean(0)
    u, s, _ = np.linalg.svd(table, full_matrices=False)
    x = u[:, :width] * s[:width]
    return torch.from_numpy((0.3 * x / x.std()).astype("f4"))


def batches(rows, size):
    """Batches of texts of like length: ids, mask and labels."""
    rows = sorted(rows, key=lambda r: len(r[0]))
    for lo in range(0, len(rows), size):
        part = rows[lo : lo + size]
        length = max(len(ids) for ids, _ in part)
        ids = torch.tensor([ids + [0] * (length - len(ids)) for ids, _ in part])
        mask = torch.tensor([[1] * len(ids) + [0] * (length - len(ids)) for ids, _ in part])
        yield ids, mask, torch.tensor([label for _, label in part])


def accuracy(model, rows) -> float:
    model.eval()
    with torch.no_grad():
        right = sum(int((model(ids, mask).argmax(1) == y).sum()) for ids, mask, y in batches(rows, 256))
    return right / len(rows)


def train(model, rows, epochs: int, seed: int) -> None:
    torch.manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-2)
    order = random.Random(seed)
    for _ in range(epochs):
        model.train()
        parts = list(batches(rows, 64))
        order.shuffle(parts)
        for ids, mask, y in parts:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(ids, mask), y).backward()
            optimizer.step()


def export(model, path: pathlib.Path) -> None:
    ids = torch.ones(2, 7, dtype=torch.int64)
    axes = {"input_ids": {0: "batch", 1: "sequence"}, "attention_mask": {0: "batch", 1: "sequence"}, "logits": {0: "batch"}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of the exporter are about itself
        torch.onnx.export(model.eval(), (ids, torch.ones_like(ids)), str(path), input_names=list(axes)[:2], output_names=["logits"], dynamic_axes=axes,
                          opset_version=17, dynamo=False)  # fmt: skip


def main(argv: list[str] | None = None) -> float:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--positive", type=pathlib.Path, required=True, help="file of positive texts, one a line")
    p.add_argument("--negative", type=pathlib.Path, required=True, help="file of negative texts, one a line")
    p.add_argument("--model", type=pathlib.Path, required=True, help="folder of the masked language model")
    p.add_argument("--out", type=pathlib.Path, required=True, help="folder to write")
    p.add_argument("--width", type=int, default=48, help="numbers of a word embedding (default 48)")
    p.add_argument("--epochs", type=int, default=6)
    p.add_argument("--seed", type=int, default=1)
    a = p.parse_args(argv)
    tokenizer = AutoTokenizer.from_pretrained(a.model)
    rows = []
    for label, path in enumerate([a.negative, a.positive]):
        lines = path.read_text(encoding="latin-1").splitlines()
        rows += [(ids, label) for ids in tokenizer(lines)["input_ids"]]
    random.Random(a.seed).shuffle(rows)
    held, rest = rows[: len(rows) // 10], rows[len(rows) // 10 :]
    torch.manual_seed(a.seed)
    model = Classifier(components(a.model / "model.onnx", len(tokenizer), a.width))
    train(model, rest, a.epochs, a.seed)
    right = accuracy(model, held)
    a.out.mkdir(parents=True, exist_ok=True)
    export(model, a.out / "model.onnx")
    for name in ["tokenizer.json", "tokenizer_config.json", "vocab.txt"]:
        shutil.copyfile(a.model / name, a.out / name)
    config = {"architectures": ["SentimentForSequenceClassification"], "id2label": dict(enumerate(LABELS)), "held_out": len(held), "accuracy": round(right, 4)}
    (a.out / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    print(f"{a.out}: accuracy {right:.3f} on {len(held)} held-out texts, {(a.out / 'model.onnx').stat().st_size / 1e6:.1f} MB")
    return right


if __name__ == "__main__":
    main()
