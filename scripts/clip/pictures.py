"""Training pictures: drawings on changing backgrounds, random shifts, sizes, turns and colours."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as fn

from .captions import Concept, Picture, is_flag, words
from .common import MEAN, STD, need

# Words of drawings that are not themselves in a mirror.
WRITTEN = words("""keycap button flag sign letters letter latin arrow arrows left right clock thirty input mark number numbers symbol zodiac
clockwise fill quarter keyboard calendar dollar euro pound yen facing hundred hash hashtag ok""")


class Pictures:
    """Draws augmented training pictures by their number among all pictures."""

    def __init__(self, work: Path, size: int, concepts: list[Concept], pictures: list[Picture], part: list[str]) -> None:
        self.size = size
        self.emoji = torch.from_numpy(np.load(need(work / "emoji.npy", "drawings")))
        self.photo = torch.from_numpy(np.load(need(work / "photo.npy", "photos")))
        self.row = np.full(len(pictures), -1)
        drawn = np.asarray([p.kind != "photo" for p in pictures])
        shown = np.asarray([p == "train" for p in part])
        self.drawings, self.photos = np.flatnonzero(drawn & shown), np.flatnonzero(~drawn & shown)
        self.row[self.drawings], self.row[self.photos] = np.arange(len(self.drawings)), np.arange(len(self.photos))
        # Flags are many, alike, and say little about other pictures.
        weight = np.asarray([0.4 if is_flag(concepts[pictures[i].concept]) else 1.0 for i in self.drawings])
        self.weight = weight / weight.sum()
        fixed = [bool(concepts[p.concept].words() & WRITTEN) and p.kind != "photo" for p in pictures]
        self.mirror = torch.tensor([not f for f in fixed])
        self.mean, self.std = torch.tensor(MEAN).view(3, 1, 1), torch.tensor(STD).view(3, 1, 1)

    def draw(self, chosen: np.ndarray, g: torch.Generator) -> Tensor:
        """Normalised pixels [n, 3, size, size] of the chosen pictures; drawings must come first."""
        rows = torch.from_numpy(self.row[chosen])
        cut = int((torch.from_numpy(chosen)[:, None] == torch.from_numpy(self.drawings)[None]).any(1).sum())
        flip = self.mirror[torch.from_numpy(chosen)] & (torch.rand(len(chosen), generator=g) < 0.5)
        out = []
        if cut:
            rgba = self.emoji[rows[:cut]].permute(0, 3, 1, 2).float() / 255
            rgba = self.warp(rgba, flip[:cut], (0.8, 1.3), 0.1, 15, "zeros", g)
            out.append(rgba[:, :3] + (1 - rgba[:, 3:]).clamp(0, 1) * self.ground(cut, g))
        if cut < len(chosen):
            rgb = self.photo[rows[cut:]].permute(0, 3, 1, 2).float() / 255
            out.append(self.warp(rgb, flip[cut:], (0.65, 1.05), 0.12, 6, "reflection", g))
        return (self.tint(torch.cat(out), g) - self.mean) / self.std

    def warp(self, x: Tensor, flip: Tensor, scale: tuple, shift: float, degrees: float, edge: str, g: torch.Generator) -> Tensor:
        """One random affine map a picture; scale below 1 looks closer."""
        n = len(x)
        u = torch.rand(n, 5, generator=g) * 2 - 1
        mid, half = (scale[0] + scale[1]) / 2, (scale[1] - scale[0]) / 2
        s = mid + half * u[:, 0]
        stretch = torch.exp(0.1 * u[:, 1])
        # Half of the pictures stay upright.
        angle = u[:, 2] * degrees * torch.pi / 180 * (torch.rand(n, generator=g) < 0.5)
        sx, sy = s * stretch * (1 - 2 * flip.float()), s / stretch
        room = shift + (1 - s).clamp(min=0)
        m = torch.stack([sx * angle.cos(), -sy * angle.sin(), u[:, 3] * room,
                         sx * angle.sin(), sy * angle.cos(), u[:, 4] * room], 1)  # fmt: skip
        grid = fn.affine_grid(m.view(n, 2, 3), [n, x.shape[1], self.size, self.size], align_corners=False)
        return fn.grid_sample(x, grid, mode="bilinear", padding_mode=edge, align_corners=False)

    def ground(self, n: int, g: torch.Generator) -> Tensor:
        """White for half of the drawings; else a colour, a slope between two, or a blurred photo."""
        ends = torch.rand(2, n, 3, 1, 1, generator=g)
        slope = torch.linspace(0, 1, self.size).view(1, 1, -1, 1)
        kind = torch.rand(n, 1, 1, 1, generator=g)
        out = ends[0] + (ends[1] - ends[0]) * slope * (kind > 0.8).float()
        out = torch.where(kind < 0.7, 0.85 + 0.15 * ends[0].mean(1, keepdim=True), out).expand(n, 3, self.size, self.size)
        if len(self.photo):
            snap = self.photo[torch.randint(len(self.photo), (n,), generator=g)].permute(0, 3, 1, 2).float() / 255
            snap = fn.interpolate(fn.avg_pool2d(snap, 8), size=(self.size, self.size), mode="bilinear")
            out = torch.where(kind > 0.92, snap, out)
        return torch.where(kind < 0.55, torch.ones(()), out)

    def tint(self, x: Tensor, g: torch.Generator) -> Tensor:
        """Mild brightness, contrast and saturation; colours must stay nameable."""
        n = len(x)
        bright, contrast, saturation = (1 + 0.3 * (torch.rand(3, n, 1, 1, 1, generator=g) - 0.5)).unbind(0)
        gray = x.mean(1, keepdim=True)
        x = gray + (x - gray) * saturation
        return ((x - 0.5) * contrast + 0.5) * bright.clamp(max=1.1)
