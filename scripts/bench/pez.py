"""Time of a step of PEZ in Go and of the published program in PyTorch, on one random text tower of ViT-B/32's size.

    pez.py [--quick] [--steps 20] [--threads 2]

The PyTorch program works as the authors' does (Wen et al. 2023, optimize_prompt_loop): every step normalises the table
of tokens, searches it for the nearest rows, runs all 77 positions of the tower and takes a step of AdamW. Both programs
take turns in blocks; what is printed is processor time (user and system), and the clock, of the median block.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import torch
from run import HERE, ROOT, Program, make_prompt_spec, prompt_tower
from tower import load_tower

LENGTH = 77


class Published:
    """PEZ on the tower in a folder, from the spec's first state."""

    def __init__(self, folder: str, spec: dict) -> None:
        self.model = load_tower(folder, "sdpa")
        self.table = self.model.text_model.embeddings.token_embedding.weight
        ids = [*spec["ids"], *[spec["ids"][-1]] * (LENGTH - len(spec["ids"]))]
        self.ids, self.blanks, self.end = torch.tensor([ids]), torch.tensor(spec["blanks"]), len(spec["ids"]) - 1
        self.target = torch.tensor(spec["target"])[None]
        start = self.table[torch.tensor(next(iter(spec["init"].values()))[0])]
        self.prompt = torch.nn.Parameter(start.clone())
        self.adam = torch.optim.AdamW([self.prompt], lr=0.1, weight_decay=0.1)
        self.mask = torch.full((1, 1, LENGTH, LENGTH), torch.finfo(torch.float32).min).triu(1)

    def step(self) -> None:
        with torch.no_grad():
            unit = torch.nn.functional.normalize(self.table, dim=-1)
            near = (torch.nn.functional.normalize(self.prompt, dim=-1) @ unit.T).topk(1, dim=-1).indices[:, 0]
            hard = self.table[near]
        hard.requires_grad_()
        rows = self.table[self.ids].index_copy(1, self.blanks, hard[None])
        tower = self.model.text_model
        x = tower.encoder(inputs_embeds=tower.embeddings(inputs_embeds=rows), causal_attention_mask=self.mask).last_hidden_state
        vector = self.model.text_projection(tower.final_layer_norm(x)[:, self.end])
        loss = 1 - torch.cosine_similarity(vector, self.target).mean()
        (self.prompt.grad,) = torch.autograd.grad(loss, [hard])
        self.adam.step()

    def steps(self, n: int) -> dict:
        clock, cpu = time.perf_counter(), time.process_time()
        for _ in range(n):
            self.step()
        return {"seconds": time.perf_counter() - clock, "cpu": time.process_time() - cpu}


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--quick", action="store_true", help="a small tower")
    p.add_argument("--steps", type=int, default=20, help="of a block")
    p.add_argument("--threads", type=int, default=2)
    a = p.parse_args()
    torch.set_num_threads(a.threads)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        subprocess.run(["go", "build", "-o", str(folder / "ours"), "./scripts/bench/ours"], cwd=ROOT, check=True)
        spec = make_prompt_spec(prompt_tower(folder / "clip", a.quick), [1], a.threads) | {"sampler": "pez"}
        (folder / "spec.json").write_text(json.dumps(spec))
        ours = Program([str(folder / "ours"), "--spec", str(folder / "spec.json")], None)
        print(ours.read()["ready"], "and torch", torch.__version__, "in", HERE.name)
        ours.ask("use 1")
        theirs = Published(spec["model"], spec)
        blocks = {"ours": [], "published": []}
        for k in range(4):
            for name, run in (("ours", lambda n: ours.ask(f"steps {n}")), ("published", theirs.steps)):
                got = run(a.steps)
                if k:  # the first warms up
                    blocks[name].append(got)
        ours.close()
    median = {name: {k: statistics.median(b[k] for b in done) / a.steps * 1e3 for k in ("cpu", "seconds")} for name, done in blocks.items()}
    for name, m in median.items():
        print(f"{name:10} {m['cpu']:8.1f} ms of processor a step, {m['seconds']:8.1f} ms by the clock")
    print(f"ours takes 1/{median['published']['cpu'] / median['ours']['cpu']:.1f} of the processor time; a prompt of 3,000 steps: "
          f"{3 * median['ours']['cpu']:.0f} and {3 * median['published']['cpu']:.0f} s of processor")  # fmt: skip


if __name__ == "__main__":
    main()
