"""The energies as published sampler code computes them: functions of one-hot codes, by transformers' layers.

Each is called with one-hot codes [chain, blank, value] and returns U [chain]; autograd does the rest.
`values` is how many a blank has, `bias` 0 where one may be proposed and -inf elsewhere.
"""

from __future__ import annotations

import torch


class Pll:
    """The sum of the blanks' log-probabilities, each masked alone, under a masked language model."""

    def __init__(self, model, spec: dict) -> None:
        self.model, self.spec = model.requires_grad_(False), spec
        self.table = model.bert.embeddings.word_embeddings.weight
        self.values = len(self.table)
        self.bias = torch.full((self.values,), -torch.inf)
        self.bias[torch.tensor(spec["allowed"])] = 0

    def __call__(self, one_hot):
        """One pass for all chains and variants."""
        c, k, _ = one_hot.shape
        embedded = one_hot @ self.table
        rows = self.table[torch.tensor(self.spec["ids"])].repeat(c, k, 1, 1)
        blanks = self.spec["blanks"]
        for i, p in enumerate(blanks):
            rows[:, :, p] = embedded[:, None, i]
            rows[:, i, p] = self.table[self.spec["mask_id"]]
        logits = self.model(inputs_embeds=rows.flatten(0, 1)).logits.unflatten(0, (c, k))
        scores = torch.stack([logits[:, i, p] for i, p in enumerate(blanks)], dim=1)
        return (torch.log_softmax(scores, dim=-1) * one_hot).sum((1, 2))


class Clip:
    """The weighted cosine of a prompt's vector and a target; values are the tokens that may be proposed."""

    def __init__(self, model, spec: dict) -> None:
        self.tower, self.project, self.spec = model.text_model, model.text_projection, spec
        everything = self.tower.embeddings.token_embedding.weight
        self.fixed = everything[torch.tensor(spec["ids"])]
        self.table = everything[torch.tensor(spec["allowed"])]
        self.values, self.bias = len(self.table), torch.zeros(len(self.table))
        self.target, self.end = torch.tensor(spec["target"]), len(spec["ids"]) - 1
        t = len(spec["ids"])
        self.mask = torch.full((1, 1, t, t), torch.finfo(torch.float32).min).triu(1)

    def __call__(self, one_hot):
        embedded = one_hot @ self.table
        rows = self.fixed.repeat(len(one_hot), 1, 1)
        rows[:, self.spec["blanks"]] = embedded
        x = self.tower.embeddings(inputs_embeds=rows)
        x = self.tower.encoder(inputs_embeds=x, causal_attention_mask=self.mask).last_hidden_state
        vector = self.project(self.tower.final_layer_norm(x)[:, self.end])
        return self.spec["weight"] * torch.cosine_similarity(vector, self.target, dim=-1)
