"""Pictures and captions to arrays: what is held out, the vocabulary, the pixels.

WORK/data.json has concepts, pictures and splits, WORK/tokenizer.json the vocabulary; emoji.npy [n, 96, 96, 4]
(premultiplied alpha) and photo.npy [n, 64, 64, 3] hold the training pictures, both uint8.
"""

from __future__ import annotations

import io
import json
import tarfile
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import numpy as np
from PIL import Image

from . import captions, tokens
from .captions import Concept, Picture
from .common import need, write_json

EMOJI, PHOTO = 96, 64  # pixels at which training pictures are kept

# Drawings in models/pictures that are held out besides the chosen ones, so that every folder has some: three hearts,
# a banana and a strawberry. The other style of each is trained on.
DEMO = ["emoji_u1f496.png", "emoji_u1f499.png", "emoji_u1f49b.png", "emoji_u1f34c.png", "emoji_u1f353.png"]

# Middle of a colour's range in the HSV circle, 0 to 1.
HUES = {"red": 0.0, "orange": 0.08, "yellow": 0.15, "green": 0.33, "blue": 0.58, "purple": 0.77, "pink": 0.92}


def split(concepts: list[Concept], pictures: list[Picture], rng: np.random.Generator, *, styles: float,
          unseen: float, photos: float) -> list[str]:  # fmt: skip
    """The part each picture belongs to: train, or one of four that are held out: style, concept, photo and demo.

    style: one drawing of a concept whose other drawing is trained on. concept: every drawing of a concept that is
    never shown. photo: a share of each class. Flags and keycaps are kept out of "concept": nothing in their
    captions says what they look like. demo: DEMO, less what is held out already; counts in no figure.
    """
    where: dict[int, list[int]] = {}
    for i, p in enumerate(pictures):
        where.setdefault(p.concept, []).append(i)
    part = ["train"] * len(pictures)
    drawn = [c for c in where if concepts[c].medium == "emoji"]
    open_ = [c for c in drawn if not captions.is_flag(concepts[c]) and concepts[c].name[0] != "keycap"]
    hidden = set(rng.permutation(open_)[: max(1, round(unseen * len(drawn)))].tolist())
    for c in hidden:
        for i in where[c]:
            part[i] = "concept"
    both = [c for c in drawn if len(where[c]) == 2 and c not in hidden]
    for c in rng.permutation(both)[: max(1, round(styles * len(both)))]:
        part[where[c][rng.integers(2)]] = "style"
    for c in both:
        for i in where[c]:
            if pictures[i].file.name in DEMO and all(part[j] == "train" for j in where[c]):
                part[i] = "demo"
    for c in where:
        if concepts[c].medium == "photo":
            for i in rng.permutation(where[c])[: round(photos * len(where[c]))]:
                part[i] = "photo"
    return part


def square(image: Image.Image, size: int) -> Image.Image:
    return image if image.size == (size, size) else image.resize((size, size), Image.Resampling.BICUBIC)


def drawing(file: Path) -> np.ndarray:
    """[96, 96, 4] with premultiplied alpha, so that resampling does not bleed hidden colours."""
    rgba = np.asarray(Image.open(file).convert("RGBA"), dtype=np.float32)
    rgba[..., :3] *= rgba[..., 3:] / 255
    planes = [square(Image.fromarray(rgba[..., i]), EMOJI) for i in range(4)]
    return np.clip(np.round(np.stack([np.asarray(p) for p in planes], -1)), 0, 255).astype(np.uint8)


def snap(data: bytes) -> np.ndarray:
    """[64, 64, 3] of a photo's file."""
    return np.asarray(square(Image.open(io.BytesIO(data)).convert("RGB"), PHOTO))


def colour(rgba: np.ndarray, share: float = 0.55) -> str:
    """The name of the colour that covers most of a drawing, or nothing."""
    seen = rgba[rgba[..., 3] > 200][:, :3].astype(np.float32) / 255
    if len(seen) < 200:
        return ""
    hsv = np.asarray(Image.fromarray((seen[None] * 255).astype(np.uint8)).convert("HSV"), np.float32)[0] / 255
    vivid = (hsv[:, 1] > 0.4) & (hsv[:, 2] > 0.35)
    distance = np.abs(hsv[:, :1] - np.asarray([*HUES.values()])[None])
    nearest = np.minimum(distance, 1 - distance).argmin(1)
    names = Counter({n: float(np.mean(vivid & (nearest == i))) for i, n in enumerate(HUES)})
    names["brown"] = float(np.mean(vivid & (nearest <= 1) & (hsv[:, 2] < 0.72)))
    names["orange"] -= min(names["orange"], names["brown"])
    names["black"] = float(np.mean(hsv[:, 2] < 0.25))
    names["white"] = float(np.mean((hsv[:, 1] < 0.1) & (hsv[:, 2] > 0.85)))
    names["gray"] = float(np.mean((hsv[:, 1] < 0.15) & (hsv[:, 2] <= 0.85) & (hsv[:, 2] > 0.3)))
    name, covered = names.most_common(1)[0]
    return name if covered > share else ""


def main_colour(c: Concept, p: Picture) -> str:
    """The colour word that a drawing adds to its captions: none where they have one, none for flags."""
    if p.kind == "photo" or captions.is_flag(c) or c.words() & {*HUES, "brown", "black", "white", "gray"}:
        return ""
    return colour(drawing(p.file))


def lines(concepts: list[Concept], used: set[int]) -> list[str]:
    """Text for the vocabulary: names and keywords of what is shown, common words more often."""
    shown = [concepts[i] for i in sorted(used)]
    count = Counter(w for c in shown for w in c.words())
    weight = {w: 40 if c.medium == "photo" else 6 for c in shown for w in c.words() if count[w] > 1 or c.medium == "photo"}
    out = [" ".join(c.name) for c in shown for _ in range(1 if captions.is_flag(c) else 4)]
    out += [" ".join(k) for c in shown for k in c.keywords]
    out += [w for w in sorted(weight) for _ in range(weight[w])]
    extra = [*captions.FILLERS, *HUES, "brown", "black", "white", "gray", "photo", "emoji"]
    return out + [w for w in sorted(extra) for _ in range(40)]


def few(concepts: list[Concept], pictures: list[Picture], n: int) -> tuple[list[Concept], list[Picture]]:
    """About n of the concepts, evenly taken, and their pictures."""
    kept = range(0, len(concepts), max(1, len(concepts) // n))
    at = {old: new for new, old in enumerate(kept)}
    return [concepts[i] for i in kept], [Picture(p.file, at[p.concept], p.kind) for p in pictures if p.concept in at]


def prepare(images: Path, work: Path, *, seed: int, vocab_size: int, limit: int = 0) -> dict:
    """Writes the folder; limit keeps that many concepts and photos a class only. Returns counts."""
    rng = np.random.default_rng([seed, 0])
    concepts, pictures = captions.emoji(images)
    if limit:
        concepts, pictures = few(concepts, pictures, limit)
    with tarfile.open(need(images / "cifar10-train-20k.tar", "photos")) as archive:
        members = {m.name: m for m in archive.getmembers() if m.isfile() and m.name.endswith(".jpg")}
        if limit:
            members = {n: m for n, m in members.items() if int(Path(n).stem) % 2000 < limit // 5}
        classes, photos = captions.photos(list(members), len(concepts))
        concepts += classes
        pictures += photos
        part = split(concepts, pictures, rng, styles=0.1, unseen=0.03, photos=0.1)
        shown = [p for p, where in zip(pictures, part, strict=True) if where == "train"]
        snaps = [snap(archive.extractfile(members[str(p.file)]).read()) for p in shown if p.kind == "photo"]
    np.save(work / "photo.npy", np.stack(snaps))
    np.save(work / "emoji.npy", np.stack([drawing(p.file) for p in shown if p.kind != "photo"]))
    hue = [main_colour(concepts[p.concept], p) for p in pictures]
    size = tokens.write(lines(concepts, {p.concept for p in shown}), vocab_size, work)
    write_json(work / "data.json", {
        "images": str(images), "vocab_size": size, "concepts": [asdict(c) for c in concepts],
        "pictures": [{"file": str(p.file), "concept": p.concept, "kind": p.kind, "part": where, "colour": h}
                     for p, where, h in zip(pictures, part, hue, strict=True)]})  # fmt: skip
    return {"vocabulary": size, **Counter(part)}


def load(work: Path) -> tuple[list[Concept], list[Picture], list[str], list[str]]:
    """Concepts, pictures, the part and the colour of every picture, as prepare wrote them."""
    d = json.loads(need(work / "data.json", "prepared data").read_text("utf-8"))
    pictures = [Picture(Path(p["file"]), p["concept"], p["kind"]) for p in d["pictures"]]
    return [Concept(**c) for c in d["concepts"]], pictures, [p["part"] for p in d["pictures"]], [p["colour"] for p in d["pictures"]]
