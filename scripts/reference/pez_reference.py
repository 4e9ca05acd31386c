"""Reference paths of PEZ (Wen et al. 2023, algorithm 1), by torch.optim.AdamW.

pez_reference.py           write tasks/prompttune/search/testdata/pez.json
pez_reference.py --check   compute again; exit 1 if the file differs

The energy is U(e) = sum_j c_j tanh(b_j + sum_i A[i, j] . e_i) of the embeddings e_i at the sites. A case has its numbers,
the initial codes, the projected codes after every step, and the embeddings P after every tenth.
"""

import json
import math
import sys

import stored
import torch

FIXTURE = "tasks/prompttune/search/testdata/pez.json"
MADE_BY = "scripts/reference/pez_reference.py"
STEPS = 50
SITES, VALUES, WIDTH, UNITS = 3, 12, 4, 3
# Codes must not hang on rounding: the nearest row leads by this much in cosine.
LEAD = 1e-4


def project(p, rows):
    """The row of largest cosine with each embedding, and its lead over the next."""
    cosine = torch.nn.functional.normalize(p, dim=-1) @ torch.nn.functional.normalize(rows, dim=-1).T
    top = cosine.topk(2, dim=-1)
    return top.indices[:, 0], (top.values[:, 0] - top.values[:, 1]).min().item()


def path(case):
    rows, a, b, c = (torch.tensor(case[k], dtype=torch.float64) for k in ("rows", "a", "b", "c"))
    p = torch.nn.Parameter(rows[case["start"]].clone())
    adam = torch.optim.AdamW([p], lr=case["lr"], weight_decay=case["decay"])
    codes, embeddings, lead = [], [], math.inf
    for t in range(STEPS):
        hard = rows[project(p.data, rows)[0]].clone().requires_grad_()
        loss = -(c * torch.tanh(b + torch.einsum("ijw,iw->j", a, hard))).sum()
        (p.grad,) = torch.autograd.grad(loss, [hard])
        adam.step()
        now, least = project(p.data, rows)
        codes.append(now.tolist())
        lead = min(lead, least)
        if t % 10 == 9:
            embeddings.append(p.detach().tolist())
    if lead < LEAD:
        sys.exit(f"{case['name']}: a nearest row leads by {lead:.1e} only; take another seed")
    return {"codes": codes, "embeddings": embeddings}


def cases():
    for name, seed, lr, decay in (("the paper's settings", 3, 0.1, 0.1), ("strong decay", 4, 0.02, 8.0), ("no decay", 5, 0.05, 0.0)):
        made = torch.Generator().manual_seed(seed)

        def numbers(*shape, made=made):
            return torch.randn(*shape, generator=made, dtype=torch.float64).float().double().tolist()

        case = {"name": name, "lr": lr, "decay": decay, "rows": numbers(VALUES, WIDTH), "a": numbers(SITES, UNITS, WIDTH)}
        case |= {"b": numbers(UNITS), "c": numbers(UNITS), "start": [1, 5, 8]}
        yield case | path(case)


def fixture():
    head = {"made_by": MADE_BY, "library": f"torch {torch.__version__.partition('+')[0]}"}
    return json.dumps(head)[:-1] + ', "cases": [\n' + ",\n".join(json.dumps(c) for c in cases()) + "\n]}\n"


SAME = stored.same_numbers(1e-10)


def main():
    stored.finish(stored.command_line(__doc__).parse_args().check, MADE_BY, {FIXTURE: fixture()}, SAME)


if __name__ == "__main__":
    main()
