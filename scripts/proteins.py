"""Experts for the design of variants of protein GB1, as torch modules and as ONNX files.

A convolutional predictor of log fitness, trained on the single and double mutants of GB1 at sites 39, 40, 41 and 54 that Wu et al.
(2016, eLife 5:e16965) measured, and a masked language model of the size of ESM-2 8M with random weights:

    python scripts/proteins.py gb1-four-sites.csv.gz OUT

writes to OUT
    fitness.onnx  [n, 56, 20] one-hot -> log(fitness + 0.05) of each sequence
    lm.onnx       [n, 56, 20] one-hot -> mutant marginal of each sequence (Meier et al. 2021)
    esm2/         the language model as Hugging Face tools write it: input_ids, attention_mask -> logits, vocab.txt
    wild.fasta    the wild type
    experts.pt    the weights
"""

import argparse
import csv
import gzip
import pathlib

import numpy as np
import torch

WILD = "MTYKLILNGKTLKGETTTEAVDAATAEKVFKQYANDNGVDGEWTYDDATKTFTVTE"
SITES = [38, 39, 40, 53]  # from 0
ALPHABET = "ACDEFGHIKLMNPQRSTVWY"
ESM = ["<cls>", "<pad>", "<eos>", "<unk>", *"LAGVSERTIDPKQNFYMHWCXBUZO.-", "<null_1>", "<mask>"]


def one_hot(sequences):
    """Returns [n, site, letter] float32 of sequences."""
    codes = torch.tensor([[ALPHABET.index(a) for a in s] for s in sequences])
    return torch.nn.functional.one_hot(codes, len(ALPHABET)).float()


def variant(four):
    """Returns the sequence with the given letters at SITES."""
    letters = list(WILD)
    for i, a in zip(SITES, four, strict=True):
        letters[i] = a
    return "".join(letters)


def measured(path):
    """Returns the measured fitness of the four letters at SITES."""
    with gzip.open(path, "rt") as file:
        rows = csv.reader(file)
        next(rows)
        return {r[0]: float(r[-1]) for r in rows}


class Predictor(torch.nn.Module):
    """Two convolutions along the sequence, and two dense layers."""

    def __init__(self, channels=32):
        super().__init__()
        self.first = torch.nn.Conv1d(len(ALPHABET), channels, 5, padding=2)
        self.second = torch.nn.Conv1d(channels, channels, 5, padding=2)
        self.third = torch.nn.Linear(channels * len(WILD), 64)
        self.last = torch.nn.Linear(64, 1)

    def forward(self, x):
        h = torch.relu(self.first(x.transpose(1, 2)))
        h = torch.relu(self.second(h))
        return self.last(torch.relu(self.third(h.flatten(1)))).squeeze(1)


def train(fitness, seed=0, epochs=60):
    """Trains a predictor on variants with one or two changes; returns it, and Spearman's rank correlation on the others."""
    torch.manual_seed(seed)
    wild = "".join(WILD[i] for i in SITES)
    near = [v for v in fitness if sum(a != b for a, b in zip(v, wild, strict=True)) <= 2]
    x, y = one_hot([variant(v) for v in near]), torch.tensor([np.log(fitness[v] + 0.05) for v in near]).float()
    net = Predictor()
    steps = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=1e-2)
    for _ in range(epochs):
        for rows in torch.randperm(len(near)).split(64):
            loss = torch.nn.functional.mse_loss(net(x[rows]), y[rows])
            steps.zero_grad()
            loss.backward()
            steps.step()
    rest = [v for v in fitness if v not in set(near)][::20]
    with torch.no_grad():
        guess = net(one_hot([variant(v) for v in rest])).numpy()
    ranks = [np.argsort(np.argsort(a)) for a in (guess, np.array([fitness[v] for v in rest]))]
    return net.eval(), len(near), np.corrcoef(*ranks)[0, 1]


def language(seed=0):
    """Returns a masked language model with the architecture of esm2_t6_8M and random weights."""
    from transformers import EsmConfig, EsmForMaskedLM

    torch.manual_seed(seed)
    return EsmForMaskedLM(
        EsmConfig(
            vocab_size=len(ESM), mask_token_id=ESM.index("<mask>"), pad_token_id=1, hidden_size=320, num_hidden_layers=6, num_attention_heads=20,
            intermediate_size=1280, max_position_embeddings=1026, position_embedding_type="rotary", emb_layer_norm_before=False, token_dropout=False,
            attn_implementation="eager",
        )
    ).eval()


class Marginal(torch.nn.Module):
    """The mutant marginal of sequences without special tokens, from one-hot letters."""

    def __init__(self, model):
        super().__init__()
        self.model = model
        order = torch.tensor([ESM.index(a) for a in ALPHABET])
        self.register_buffer("letters", torch.nn.functional.one_hot(order, len(ESM)).float())
        self.register_buffer("wild", one_hot([WILD]))

    def forward(self, x):
        embedded = (x @ self.letters) @ self.model.esm.embeddings.word_embeddings.weight
        h = self.model.esm.encoder(embedded).last_hidden_state
        logp = torch.log_softmax(self.model.lm_head(h), -1) @ self.letters.T
        return ((x - self.wild) * logp).sum((1, 2))


class Logits(torch.nn.Module):
    """The logits of ids."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask):
        return self.model(input_ids=input_ids, attention_mask=attention_mask).logits


def export(module, args, path, inputs, output, axes):
    """Writes a module as ONNX."""
    torch.onnx.export(module, args, path, input_names=inputs, output_names=[output], dynamic_axes=axes, opset_version=17, dynamo=False)


def main():
    """Trains, exports, and says how good the predictor is."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("data")
    p.add_argument("out", type=pathlib.Path)
    a = p.parse_args()
    (a.out / "esm2").mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(2)
    net, n, rho = train(measured(a.data))
    print(f"trained on {n} variants with at most two changes; Spearman {rho:.3f} on a twentieth of the others")
    lm = language()
    torch.save({"fitness": net.state_dict(), "lm": lm.state_dict()}, a.out / "experts.pt")
    two = one_hot([WILD, WILD])
    for name, module in [("fitness", net), ("lm", Marginal(lm))]:
        export(module, (two,), a.out / f"{name}.onnx", ["x"], name, {"x": {0: "n"}, name: {0: "n"}})
    ids = torch.ones(2, 9, dtype=torch.long)
    free = {0: "batch", 1: "sequence"}
    export(Logits(lm), (ids, ids), a.out / "esm2/model.onnx", ["input_ids", "attention_mask"], "logits", dict.fromkeys(["input_ids", "attention_mask", "logits"], free))
    (a.out / "esm2/vocab.txt").write_text("\n".join(ESM) + "\n")
    (a.out / "wild.fasta").write_text(f">GB1\n{WILD}\n")


if __name__ == "__main__":
    main()
