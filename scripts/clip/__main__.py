"""Driver of the recipe: python -m scripts.clip [step ...] --seed 1

Steps: prepare, train, export, evaluate; without one, all four in this order. Training stops after
--piece-minutes and goes on from its checkpoint the next time, until --minutes are used up. The step
search, which is run only when asked for, looks for the prompts the model likes best.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

from .common import RecipeError, Shape, need, write_json

STEPS = ["prepare", "train", "export", "evaluate"]


def arguments(argv: list[str] | None) -> argparse.Namespace:
    p = argparse.ArgumentParser(prog="python -m scripts.clip", description=__doc__)
    p.add_argument("steps", nargs="*", metavar="step", help="prepare, train, export, evaluate (default: all), search")
    p.add_argument("--images", type=Path, default=Path("../shared/data/images"), help="emoji folders and the archive of photos")
    p.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "gradhop-clip", help="cache, checkpoint and log")
    p.add_argument("--out", type=Path, default=None, help="model folder (default: WORK/model)")
    p.add_argument("--log", type=Path, default=None, help="CSV log (default: WORK/log.csv)")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--minutes", type=float, default=55, help="training budget over all pieces")
    p.add_argument("--piece-minutes", type=float, default=0, help="stop and checkpoint after this long")
    p.add_argument("--max-steps", type=int, default=0, help="training budget in steps, instead of minutes")
    p.add_argument("--vocab-size", type=int, default=5120)
    p.add_argument("--sets", type=Path, default=Path("models/pictures"), help="folders of pictures for search")
    p.add_argument("--tiny", action="store_true", help="a model and budget for trying the recipe out")
    a = p.parse_args(argv)
    for s in a.steps:
        if s not in [*STEPS, "search"]:
            p.error(f"unknown step {s!r} (steps: {', '.join(STEPS)}, search)")
    a.steps = a.steps or STEPS
    a.out, a.log = a.out or a.work / "model", a.log or a.work / "log.csv"
    return a


def settings(a: argparse.Namespace):
    """The training settings that the flags ask for."""
    from .train import Settings

    if not a.tiny:
        return Settings(seed=a.seed, minutes=a.minutes, max_steps=a.max_steps)
    shape = Shape(text_width=64, text_layers=2, text_heads=2, vision_width=8, vision_layers=(1, 1, 1, 1), projection=32)
    return Settings(shape=shape, seed=a.seed, max_steps=a.max_steps or 40, drawings=24, photos=16, spoilt=12, gibberish=8,
                    chains=8, log_every=10)  # fmt: skip


def export_step(a: argparse.Namespace) -> None:
    """Checkpoint to model folder, compared with torch."""
    import torch

    from .export import difference, export
    from .model import Clip

    state = torch.load(need(a.work / "checkpoint.pt", "checkpoint"), map_location="cpu", weights_only=True)
    model = Clip(Shape(**state["shape"])).eval()
    model.load_state_dict(state["model"])
    export(model, a.work, a.out)
    gaps = difference(a.out, model)
    size = sum(f.stat().st_size for f in a.out.iterdir())
    print(f"{a.out}: {size} bytes, largest difference from torch {gaps[0]:.1e} (vision), {gaps[1]:.1e} (text)")
    if max(gaps) > 1e-3:
        raise RecipeError(f"clip: {a.out} differs from torch by {max(gaps):.1e}")


def run(argv: list[str] | None = None) -> None:
    a = arguments(argv)
    a.work.mkdir(parents=True, exist_ok=True)
    if "prepare" in a.steps:
        from .prepare import prepare

        size, limit = (1024, 60) if a.tiny else (a.vocab_size, 0)
        print("prepared", json.dumps(prepare(a.images, a.work, seed=a.seed, vocab_size=size, limit=limit)))
    if "train" in a.steps:
        from .train import train

        train(a.work, settings(a), a.log, a.piece_minutes)
        print(a.log.read_text("utf-8").splitlines()[-1])
    if "export" in a.steps:
        export_step(a)
    if "evaluate" in a.steps:
        from .evaluate import evaluate

        figures = evaluate(a.out, a.work, a.images)
        write_json(a.work / "figures.json", figures)
        print(json.dumps(figures, indent=2))
    if "search" in a.steps:
        from .search import report

        for name, found in report(a.out, sorted(d for d in a.sets.iterdir() if d.is_dir())).items():
            for length, prompts in found.items():
                print(name, length, *(f"{c:.4f} {t!r}" for c, t in prompts), sep="\t")


def main() -> None:
    try:
        run()
    except (RecipeError, OSError) as e:
        sys.exit(str(e))


if __name__ == "__main__":
    main()
