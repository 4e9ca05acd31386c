"""Recurrent networks. See architectures.py."""

from __future__ import annotations

import torch
from architectures_case import Case, integers, normal, weights
from torch import nn

VOCAB = 11


class Language(nn.Module):
    """The log-probability of a text: its words are both what is read and what is predicted."""

    def __init__(self, body, wide):
        super().__init__()
        self.table, self.body, self.head = nn.Embedding(VOCAB, 6), body, nn.Linear(wide, VOCAB)

    def forward(self, ids):
        h, _ = self.body(self.table(ids[:, :-1]))
        logp = torch.log_softmax(self.head(h), -1)
        return torch.gather(logp, 2, ids[:, 1:].unsqueeze(2)).sum((1, 2))


def language(about, body, wide, opset):
    net, ids = weights(Language(body, wide)), integers(0, VOCAB, 2, 6)
    return Case(about, net, {"ids": ids}, ["ids"], opset, tables={"ids": VOCAB})


def lstm_language():
    return language("LSTM language model, two layers", nn.LSTM(6, 8, num_layers=2, batch_first=True), 8, 9)


def gru_language():
    return language("GRU language model", nn.GRU(6, 8, batch_first=True), 8, 10)


def rnn_language():
    return language("language model of a plain recurrent network", nn.RNN(6, 8, batch_first=True), 8, 14)


class Recurrent(nn.Module):
    """A bidirectional network over time first, read at its last states and all outputs."""

    def __init__(self, body, wide):
        super().__init__()
        self.body, self.head = body, nn.Linear(2 * wide, 1)

    def forward(self, x, *state):
        y, last = self.body(x, state if len(state) > 1 else state[0])
        last = last if isinstance(last, tuple) else (last,)
        return self.head(y).sum((0, 2)) + sum(s.square().sum((0, 2)) for s in last)


def bidirectional(about, body, opset, states):
    inputs = {"x": normal(4, 2, 5)} | {f"state{k}": normal(2, 2, 6, seed=5 + k) for k in range(states)}
    free = {n: {1: "batch"} for n in inputs}
    return Case(about, weights(Recurrent(body, 6)), inputs, list(inputs), opset, free=free)


def lstm_bidirectional():
    return bidirectional("bidirectional LSTM by its input and its initial states", nn.LSTM(5, 6, bidirectional=True), 14, 2)


def gru_bidirectional():
    return bidirectional("bidirectional GRU by its input and its initial state", nn.GRU(5, 6, bidirectional=True), 17, 1)


def rnn_bidirectional():
    body = nn.RNN(5, 6, bidirectional=True, nonlinearity="relu")
    return bidirectional("bidirectional plain network with ReLU", body, 13, 1)


CASES = {
    "lstm-language": lstm_language, "gru-language": gru_language, "rnn-language": rnn_language,
    "lstm-bidirectional": lstm_bidirectional, "gru-bidirectional": gru_bidirectional, "rnn-bidirectional": rnn_bidirectional,
}  # fmt: skip
