"""Searches prompts for a folder of pictures, to see what a model overrates.

Greedy coordinate gradient (Zou et al. 2023): the gradient by token proposes replacements, the best of a few that
are scored exactly is taken if it is better. A harder attack than a sampler of the same budget.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from .common import Shape, need
from .export import hf_text
from .tokens import Tokens


def pixels(file: Path | Image.Image, config: dict) -> np.ndarray:
    """[3, size, size] as preprocessor_config.json says; transparent pictures lie on white."""
    image = file if isinstance(file, Image.Image) else Image.open(file)
    if image.mode in ("RGBA", "LA", "P"):
        rgba = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", rgba.size, (255, 255, 255, 255)), rgba)
    image, edge, crop = image.convert("RGB"), config["size"]["shortest_edge"], config["crop_size"]["height"]
    w, h = image.size
    if min(w, h) != edge or w != h:
        # transformers gives the short side edge pixels and cuts the other down to a whole number.
        w, h = (edge, int(edge * h / w)) if w <= h else (int(edge * w / h), edge)
        image = image.resize((w, h), Image.Resampling(config["resample"]))
    left, top = (w - crop) // 2, (h - crop) // 2
    a = np.asarray(image.crop((left, top, left + crop, top + crop)), np.float32) * config["rescale_factor"]
    a = (a - np.asarray(config["image_mean"], np.float32)) / np.asarray(config["image_std"], np.float32)
    return np.ascontiguousarray(a.transpose(2, 0, 1), np.float32)


class Model:
    """An exported folder under onnxruntime, one thread."""

    def __init__(self, folder: Path) -> None:
        import onnxruntime

        self.folder = folder
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.vision, self.text = (
            onnxruntime.InferenceSession(str(need(folder / f, "model")), options, providers=["CPUExecutionProvider"])
            for f in ("vision_model.onnx", "text_model.onnx"))  # fmt: skip
        self.config = json.loads((folder / "preprocessor_config.json").read_text("utf-8"))
        self.tokens = Tokens(folder)

    def images(self, files: list[Path | Image.Image], block: int = 100) -> np.ndarray:
        """Unit vectors of pictures."""
        out = [self.vision.run(None, {"pixel_values": np.stack([pixels(f, self.config) for f in files[i : i + block]])})[0]
               for i in range(0, len(files), block)]  # fmt: skip
        return unit(np.concatenate(out))

    def texts(self, texts: list[str] | list[list[int]], block: int = 256) -> np.ndarray:
        """Unit vectors of strings, or of token ids without specials."""
        from .texts import pad

        n, out = self.tokens.size, []
        ids = [self.tokens.tokenizer.encode(t, add_special_tokens=False).ids if isinstance(t, str) else t for t in texts]
        for i in range(0, len(ids), block):
            out.append(self.text.run(None, {"input_ids": pad(ids[i : i + block], n - 2, n - 1)})[0])
        return unit(np.concatenate(out))


def unit(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def climb(folder: Path, goal: np.ndarray, length: int, *, chains: int = 6, steps: int = 40, tries: int = 48, seed: int = 0) -> list:
    """[(cosine, ids)] of the chains' last prompts, best first; goal is a mean of unit vectors."""
    text, tokens = hf_text(folder), Tokens(folder)
    s, rng = Shape(vocab_size=tokens.size), np.random.default_rng(seed)
    v = torch.from_numpy(goal.astype(np.float32))
    table = text.text_model.embeddings.token_embedding.weight.detach()
    x = torch.full((chains, length + 2), s.end)
    x[:, 0], x[:, 1:-1] = s.start, torch.from_numpy(rng.integers(0, s.start, (chains, length)))

    def score(ids: torch.Tensor, rows: torch.Tensor | None = None) -> torch.Tensor:
        if rows is not None:
            hook = text.text_model.embeddings.token_embedding.register_forward_hook(lambda *_: rows)
        e = text(input_ids=ids).text_embeds
        if rows is not None:
            hook.remove()
        return (e / e.norm(dim=1, keepdim=True)) @ v

    best = score(x).detach()
    for _ in range(steps):
        rows = table[x].requires_grad_()
        (slope,) = torch.autograd.grad(score(x, rows).sum(), rows)
        gain = (slope[:, 1:-1] @ table[: s.start].T - (slope * rows.detach()).sum(-1)[:, 1:-1, None]).flatten(1)
        top = gain.topk(4 * tries).indices
        pick = torch.stack([t[torch.from_numpy(rng.permutation(4 * tries)[:tries])] for t in top])
        many = x.repeat_interleave(tries, 0)
        many[torch.arange(len(many)), 1 + pick.flatten() // s.start] = pick.flatten() % s.start
        with torch.no_grad():
            found = score(many).view(chains, tries)
        value, at = found.max(1)
        better = value > best
        x[better] = many.view(chains, tries, -1)[torch.arange(chains), at][better]
        best = torch.maximum(best, value)
    order = best.argsort(descending=True).tolist()
    return [(float(best[i]), x[i, 1:-1].tolist()) for i in order]


def report(folder: Path, sets: list[Path], lengths: tuple[int, ...] = (4, 8), seed: int = 0) -> dict:
    """{set: {length: [(cosine, prompt)]}} of every folder of pictures."""
    model, out = Model(folder), {}
    for d in sets:
        goal = model.images(sorted(d.glob("*.png"))).mean(0)
        out[d.name] = {n: [(round(c, 4), model.tokens.decode(ids)) for c, ids in climb(folder, goal, n, seed=seed)[:3]] for n in lengths}
    return out
