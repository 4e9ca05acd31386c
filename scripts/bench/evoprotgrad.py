"""Runs EvoProtGrad 0.2 on the experts of scripts/proteins.py and writes its states, for design.py beside this file.

    .venv-evoprotgrad/bin/python scripts/bench/evoprotgrad.py EXPERTS OUT.json --sites all --within 4 --chains 8 --steps 100 --threads 2
"""

import argparse
import json
import pathlib
import sys
import tempfile
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
import proteins


def experts(folder, weights):
    """Returns the predictor and the language model as experts, without those of weight 0."""
    from evo_prot_grad.experts.esm_expert import EsmExpert
    from evo_prot_grad.experts.onehot_downstream_regression_expert import OneHotDownstreamRegressionExpert
    from transformers import EsmTokenizer

    state = torch.load(folder / "experts.pt")
    net, lm = proteins.Predictor(), proteins.language()
    net.load_state_dict(state["fitness"])
    lm.load_state_dict(state["lm"])
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(proteins.ESM) + "\n")
        file.flush()
        tokenizer = EsmTokenizer(file.name)
    both = [
        OneHotDownstreamRegressionExpert(weights[0], "attribute_value", net.eval(), "cpu"),
        EsmExpert(weights[1], "mutant_marginal", lm.eval(), tokenizer, "cpu"),
    ]
    return [e for e, w in zip(both, weights, strict=True) if w]


def main():
    """Runs and writes {"seconds", "cpu", "score": [step][chain], "sequence": [step][chain]}."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("experts", type=pathlib.Path)
    p.add_argument("out", type=pathlib.Path)
    p.add_argument("--sites", default="all", choices=["all", "four"])
    p.add_argument("--within", type=int, default=-1)
    p.add_argument("--chains", type=int, default=8)
    p.add_argument("--steps", type=int, default=100)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--weights", type=float, nargs=2, default=[5, 1])
    a = p.parse_args()
    torch.set_num_threads(a.threads)
    from evo_prot_grad.common.sampler import DirectedEvolution

    held, last = [], -1
    for i in [*proteins.SITES, len(proteins.WILD)] if a.sites == "four" else []:
        if i > last + 1:
            held.append((last + 1, i - 1))
        last = i
    run = DirectedEvolution(experts(a.experts, a.weights), a.chains, a.steps, a.within, "all", held or None, wt_protein=proteins.WILD, random_seed=a.seed)
    began, cpu = time.perf_counter(), time.process_time()
    sequences, scores = run()
    took = {"seconds": time.perf_counter() - began, "cpu": time.process_time() - cpu}
    a.out.write_text(json.dumps(took | {"score": scores.tolist(), "sequence": [[s.replace(" ", "") for s in row] for row in sequences]}))


if __name__ == "__main__":
    main()
