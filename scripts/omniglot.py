"""Omniglot's drawings as 28x28 grey levels for `gradhop ebm train`.

The drawings have 105x105 black and white pixels (Lake, Salakhutdinov and Tenenbaum 2015). A pixel of the result is the mean of the
area that it covers, times 255. The papers on energy-based models use another reduction, by Burda, Grosse and
Salakhutdinov (2016), with 24,345 drawings for training; as many are drawn at random here, and the others are for the test.

    python scripts/omniglot.py images_background.npz images_evaluation.npz --out omniglot/
    gradhop ebm train rbm.onnx --space binary:784 --data omniglot/train.npy --binarize static --out run/
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

SIDE, TRAIN = 28, 24345


def coverage(size: int) -> np.ndarray:
    """The share of each of `size` pixels in each of SIDE pixels of the same total length, [SIDE, size]; rows sum to 1."""
    low, high = (np.arange(SIDE)[:, None] + [0, 1]).T * size / SIDE
    pixel = np.arange(size)
    return np.clip(np.minimum(high[:, None], pixel + 1) - np.maximum(low[:, None], pixel), 0, None) * SIDE / size


def reduced(drawings: np.ndarray) -> np.ndarray:
    """Drawings [n, size, size], true for ink, as bytes [n, SIDE, SIDE]."""
    a = coverage(drawings.shape[-1]).astype(np.float32)
    return np.rint(255 * (a @ drawings.astype(np.float32) @ a.T)).astype(np.uint8)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path, help="NPZ files with an array `images` of drawings, true for ink or for paper")
    parser.add_argument("--out", type=Path, required=True, help="folder for train.npy and test.npy")
    parser.add_argument("--seed", type=int, default=1)
    o = parser.parse_args()
    images = np.concatenate([a.reshape(-1, *a.shape[-2:]) for a in (np.load(f)["images"] for f in o.files)])
    if images.mean() > 0.5:  # true for paper
        images = ~images
    order = np.random.default_rng(o.seed).permutation(len(images))
    o.out.mkdir(parents=True, exist_ok=True)
    for name, rows in (("train", order[:TRAIN]), ("test", order[TRAIN:])):
        np.save(o.out / f"{name}.npy", np.concatenate([reduced(part) for part in np.array_split(images[rows], 1 + len(rows) // 1000)]))
        print(f"{o.out / name}.npy: {len(rows)} drawings")


if __name__ == "__main__":
    main()
