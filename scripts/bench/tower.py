"""A random CLIP text tower in the Hugging Face layout: the model of the benchmark of prompts."""

from __future__ import annotations

import warnings
from pathlib import Path

import torch
from transformers import CLIPTextConfig, CLIPTextModelWithProjection


def random_tower(vocab=49408, width=512, layers=12, heads=8, attention="sdpa") -> CLIPTextModelWithProjection:
    """ViT-B/32's text tower by default; begin and end of text are the last two tokens, as CLIP has them.

    transformers' own initialisation, but no bias is zero and no scale one: they take part in what
    the programs have to agree on.
    """
    config = CLIPTextConfig(
        vocab_size=vocab, hidden_size=width, intermediate_size=4 * width, num_hidden_layers=layers, num_attention_heads=heads,
        projection_dim=width, bos_token_id=vocab - 2, eos_token_id=vocab - 1, pad_token_id=vocab - 1, attn_implementation=attention,
    )  # fmt: skip
    torch.manual_seed(0)
    model = CLIPTextModelWithProjection(config).eval().requires_grad_(False)
    for p in model.parameters():
        if p.dim() == 1:
            p.add_(torch.randn_like(p), alpha=0.1)
    return model


def load_tower(folder: str, attention: str) -> CLIPTextModelWithProjection:
    return CLIPTextModelWithProjection.from_pretrained(folder, attn_implementation=attention).eval().requires_grad_(False)


class Embeds(torch.nn.Module):
    """The tower with the file's input and output alone."""

    def __init__(self, model: CLIPTextModelWithProjection) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids):
        return self.model(input_ids=input_ids).text_embeds


def save_tower(model: CLIPTextModelWithProjection, folder: Path) -> None:
    """Writes the folder: weights and config.json for PyTorch, text_model.onnx with open batch and sequence."""
    model.save_pretrained(folder)
    last = model.config.vocab_size - 1
    example = torch.tensor([[last - 1, 3, 4, 5, last], [last - 1, 6, 7, 8, last]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter's are about itself
        torch.onnx.export(
            Embeds(model).eval(), (example,), str(folder / "text_model.onnx"), dynamo=False, opset_version=18,
            input_names=["input_ids"], output_names=["text_embeds"],
            dynamic_axes={"input_ids": {0: "batch", 1: "sequence"}, "text_embeds": {0: "batch"}},
        )  # fmt: skip
