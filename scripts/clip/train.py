"""Training: both softmaxes of CLIP, with the fits of relevance.py as targets.

For pictures i and texts t of a batch, the logits are exp(scale) cos(i, t). Each picture's distribution over the
texts, and each text's over the pictures, is pulled towards softmax(s(i, t)): a contrastive loss in which every
caption of the batch counts for every picture as much as it is true of it, and in which spoilt captions, gibberish
and the finds of a running prompt search (adversary.py) are ranked below.

A softmax cares little for what is far below its best. A set of pictures is described by words that are true of
all and the best for none, so the last third of the run adds a loss by pairs, as SigLIP has (Zhai et al. 2023): the
logistic loss of exp(scale) (cos(i, t) - MIDDLE) with target sigmoid(s(i, t)), and with it texts of a word or two.
All three terms are least where exp(scale) (cos - MIDDLE) = s. All schedules follow the share of the
time budget, so that a run on busy cores still ends with the learning rate at zero.
"""

from __future__ import annotations

import csv
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional as fn

from .adversary import Adversary
from .common import Shape
from .model import Clip
from .optim import Muon, adamw
from .pictures import Pictures
from .prepare import load
from .relevance import Relevance
from .texts import Writer, pad
from .tokens import Tokens

HEAD = "step,minutes,pictures,lr,loss,picture_to_text,text_to_picture,top1,adversary_fit,adversary_cosine,scale,pairs"
MIDDLE = 0.3  # the cosine at a fit of 0


@dataclass
class Settings:
    shape: Shape = field(default_factory=Shape)
    seed: int = 1
    minutes: float = 55
    max_steps: int = 0
    lr: float = 2e-3
    lr_matrix: float = 3e-3
    warmup: float = 0.03  # share of the run
    drawings: int = 96
    photos: int = 64
    spoilt: int = 80
    gibberish: int = 32
    chains: int = 32
    pairs: float = 12.0  # weight of the loss by pairs
    words: int = 48  # texts of a word or two
    late: float = 0.65  # share of the run after which these two begin
    adversary: float = 0.15  # share of the run after which the chains begin
    log_every: int = 20
    save_every: float = 120


class Trainer:
    """State of a run: model, optimisers, chains and the generators of random numbers."""

    def __init__(self, work: Path, s: Settings) -> None:
        self.s, self.work = s, work
        torch.manual_seed(s.seed)
        self.concepts, pictures, part, colours = load(work)
        tokens = Tokens(work)
        s.shape.vocab_size = tokens.size
        self.model = Clip(s.shape)
        self.model.visual.to(memory_format=torch.channels_last)
        self.muon, self.adamw = Muon(self.model), adamw(self.model)
        self.pictures = Pictures(work, s.shape.image_size, self.concepts, pictures, part)
        self.relevance = Relevance(self.concepts, pictures, colours, tokens)
        longest = min(34, s.shape.context - 2)
        self.writer = Writer(self.concepts, tokens, self.relevance, longest)
        shown = np.flatnonzero(np.asarray(part) == "train")
        self.adversary = Adversary(s.chains, longest, shown, self.relevance, self.writer, s.shape.projection)
        self.steps, self.seen, self.seconds = 0, 0, 0.0
        self.sums, self.summed = np.zeros(7), 0

    def progress(self) -> float:
        """Share of the budget that is used up."""
        if self.s.max_steps:
            return self.steps / self.s.max_steps
        return self.seconds / (60 * self.s.minutes)

    def rate(self) -> float:
        """Linear warm-up, then linear decay to zero."""
        p = min(self.progress(), 1.0)
        return min((p + 1e-3) / self.s.warmup, (1 - p) / (1 - self.s.warmup))

    def choose(self, rng: np.random.Generator, hunted: bool) -> np.ndarray:
        """The pictures of a batch, drawings first."""
        p, s = self.pictures, self.s
        goals = self.adversary.goals(rng) if hunted else np.zeros(0, int)
        drawn = np.isin(goals, p.drawings)
        more = rng.choice(p.drawings, max(0, s.drawings - int(drawn.sum())), replace=len(p.drawings) < s.drawings, p=p.weight)
        snaps = rng.choice(p.photos, max(0, s.photos - int((~drawn).sum())), replace=len(p.photos) < s.photos)
        return np.concatenate([goals[drawn], more, goals[~drawn], snaps])

    def write(self, chosen: np.ndarray, rng: np.random.Generator) -> list[list[int]]:
        """The texts of a batch without the chains' ones."""
        w = self.writer
        out = [w.caption(p, rng) for p in chosen]
        for _ in range(self.s.spoilt):
            a, b = rng.choice(chosen, 2)
            out.append(w.spoilt(a, b, rng))
        return out + [w.gibberish(rng) for _ in range(self.s.gibberish)]

    def encode(self, texts: list[list[int]]) -> torch.Tensor:
        """Unit vectors of texts; short and long ones go through apart, which saves padding."""
        order = np.argsort([len(t) for t in texts], kind="stable")
        out = []
        with torch.autocast("cpu", dtype=torch.bfloat16):
            for part in np.array_split(order, 3):
                ids = pad([texts[i] for i in part], self.s.shape.start, self.s.shape.end)
                out.append(self.model.texts(torch.from_numpy(ids)))
        return torch.cat(out)[torch.from_numpy(np.argsort(order))]

    def step(self) -> None:
        rng = np.random.default_rng([self.s.seed, 1, self.steps])
        g = torch.Generator().manual_seed(int(rng.integers(2**62)))
        hunted = self.s.chains > 0 and self.progress() >= self.s.adversary
        chosen = self.choose(rng, hunted)
        texts = self.write(chosen, rng)
        late = self.progress() >= self.s.late
        if late:
            texts += [self.writer.few(p, rng) for p in rng.choice(chosen, self.s.words)]
        if hunted:
            texts += self.adversary.climb(self.model, rng)
        fit = torch.from_numpy(self.relevance.fits(chosen, texts))
        pixels = self.pictures.draw(chosen, g).contiguous(memory_format=torch.channels_last)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            seen = self.model.images(pixels)
        cosine = seen @ self.encode(texts).T
        logits = cosine * self.model.logit_scale.exp()
        by_picture = fn.kl_div(logits.log_softmax(1), fit.softmax(1), reduction="batchmean")
        by_text = fn.kl_div(logits.T.log_softmax(1), fit.T.softmax(1), reduction="batchmean")
        loss = (by_picture + by_text) / 2
        true = fit.sigmoid()
        excess = fn.binary_cross_entropy_with_logits((cosine - MIDDLE) * self.model.logit_scale.exp(), true)
        excess = excess - fn.binary_cross_entropy(true, true)
        if late:
            loss = loss + self.s.pairs * excess
        self.adamw.zero_grad(set_to_none=True)
        for p in self.muon.params:
            p.grad = None
        loss.backward()
        lr = self.rate()
        for group in self.adamw.param_groups:
            group["lr"] = self.s.lr * lr
        torch.nn.utils.clip_grad_norm_([p for q in self.adamw.param_groups for p in q["params"]], 1.0)
        self.adamw.step()
        self.muon.step(self.s.lr_matrix * lr)
        with torch.no_grad():
            self.model.logit_scale.clamp_(max=4.6)  # exp: 100, as in CLIP
        self.adversary.keep(chosen, seen)
        best = fit.gather(1, logits.detach().argmax(1, keepdim=True))[:, 0]
        top = float((best >= fit.max(1).values - 1).float().mean())
        # How true the chains' texts are of the picture of their goal, and how high the model has them.
        own = (0.0, 0.0)
        if hunted:
            n = self.s.chains
            mine = fit[:, -n:].max(0)
            own = (float(mine.values.mean()), float(cosine.detach()[:, -n:].max(0).values.mean()))
        self.sums += [float(loss.detach()), float(by_picture.detach()), float(by_text.detach()), top, *own, float(excess.detach())]
        self.summed += 1
        self.seen += len(chosen)
        self.steps += 1

    def row(self) -> list:
        mean = self.sums / max(self.summed, 1)
        self.sums[:], self.summed = 0, 0
        head = [self.steps, f"{self.seconds / 60:.2f}", self.seen, f"{self.s.lr_matrix * self.rate():.2e}"]
        return [*head, *(f"{x:.4f}" for x in mean[:-1]), f"{float(self.model.logit_scale.detach().exp()):.2f}", f"{mean[-1]:.4f}"]

    def save(self) -> None:
        """Writes the checkpoint aside and renames it: a reader never meets half a file."""
        a = self.adversary
        state = {"shape": self.s.shape.as_dict(), "model": self.model.state_dict(), "muon": self.muon.buffers,
                 "adamw": self.adamw.state_dict(), "steps": self.steps, "seen": self.seen, "seconds": self.seconds,
                 "bank": a.bank, "text": a.text, "goal": [torch.from_numpy(g) for g in a.goal], "ready": a.ready}  # fmt: skip
        aside = self.work / "checkpoint.pt.tmp"
        torch.save(state, aside)
        aside.replace(self.work / "checkpoint.pt")

    def load(self, path: Path) -> None:
        state = torch.load(path, map_location="cpu", weights_only=True)
        self.model.load_state_dict(state["model"])
        self.muon.buffers = state["muon"]
        self.adamw.load_state_dict(state["adamw"])
        self.steps, self.seen, self.seconds = state["steps"], state["seen"], state["seconds"]
        a = self.adversary
        a.bank, a.text, a.ready = state["bank"], state["text"], state["ready"]
        a.goal = [g.numpy() for g in state["goal"]]


def trim(log: Path, step: int) -> None:
    """Drops lines after the checkpoint's step: the run goes over those steps again."""
    head, *rows = log.read_text("utf-8").splitlines() if log.exists() else [HEAD]
    log.write_text("\n".join([head, *(r for r in rows if int(r.split(",")[0]) <= step)]) + "\n", encoding="utf-8")


def train(work: Path, s: Settings, log: Path, piece_minutes: float = 0.0) -> Path:
    """Trains until the budget is spent, or for piece_minutes; returns the checkpoint."""
    torch.set_num_threads(1)
    t, path = Trainer(work, s), work / "checkpoint.pt"
    if path.exists():
        t.load(path)
    else:
        log.unlink(missing_ok=True)
    trim(log, t.steps)
    began = mark = saved = time.monotonic()
    while t.progress() < 1 and not 0 < 60 * piece_minutes < mark - began:
        t.step()
        now = time.monotonic()
        t.seconds += now - mark
        mark = now
        if t.steps % s.log_every == 0:
            with open(log, "a", newline="") as sink:
                csv.writer(sink, lineterminator="\n").writerow(t.row())
        if now - saved > s.save_every:
            t.save()
            saved = now
    t.save()
    return path
