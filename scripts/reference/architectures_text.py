"""Transformers of text and images. See architectures.py."""

from __future__ import annotations

import torch
import transformers
from architectures_case import Case, integers, normal, weights
from torch import nn
from torch.nn import functional

VOCAB = 20
LENGTH = 7


def eager(**more):
    return {"vocab_size": VOCAB, "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 24, "attn_implementation": "eager"} | more


def text():
    return integers(3, VOCAB, 2, LENGTH)


def padded():
    mask = torch.ones(2, LENGTH, dtype=torch.int64)
    mask[1, 5:] = 0
    return mask


def likelihood(logits, ids):
    """The log-probability of each text: ids are what is predicted."""
    return torch.gather(torch.log_softmax(logits, -1), 2, ids.unsqueeze(2)).sum((1, 2))


def causal(length, like):
    """What is added to attention scores: nothing for earlier words, the lowest number for later ones."""
    low = torch.full((length, length), torch.finfo(torch.float32).min, dtype=like.dtype)
    return torch.triu(low, 1)[None, None]


class Bert(nn.Module):
    """The words' log-probabilities, given all words, where the mask says that there is one."""

    def __init__(self, **more):
        super().__init__()
        config = transformers.BertConfig(num_hidden_layers=2, max_position_embeddings=LENGTH, **eager(**more))
        self.model = transformers.BertForMaskedLM(config)

    def forward(self, ids, mask):
        logp = torch.log_softmax(self.model(input_ids=ids, attention_mask=mask).logits, -1)
        return (torch.gather(logp, 2, ids.unsqueeze(2))[..., 0] * mask).sum(1)


def bert(opset=14, **more):
    inputs = {"ids": text(), "mask": padded()}
    return Case("BERT, masked language model", weights(Bert(**more)), inputs, ["ids"], opset, tables={"ids": VOCAB})


def bert_sdpa():
    case = bert(17, attn_implementation="sdpa")
    case.free = {n: {0: "batch", 1: "length"} for n in case.inputs}
    return case


class Embedded(nn.Module):
    """BERT behind its table of words."""

    def __init__(self):
        super().__init__()
        self.bert = Bert().model

    def forward(self, x, mask):
        return self.bert(inputs_embeds=x, attention_mask=mask).logits


def bert_dynamo():
    """The product of a vector with the Jacobian of all logits, by vectors in place of words."""
    inputs = {"x": normal(2, LENGTH, 16), "mask": padded()}
    return Case("BERT from embeddings to logits", weights(Embedded()), inputs, ["x"], 18, dynamo=True, reduce="none")


def clip_config(layers=2, **text):
    vision = eager(num_hidden_layers=layers, image_size=8, patch_size=4, projection_dim=8)
    text = eager(num_hidden_layers=layers, max_position_embeddings=LENGTH, eos_token_id=VOCAB - 1, bos_token_id=1, pad_token_id=0, projection_dim=8) | text
    return transformers.CLIPConfig(text_config=text, vision_config=vision, projection_dim=8, attn_implementation="eager")


def sub(config):
    """The settings of one tower, which loses the kind of attention on the way."""
    return type(config)(**config.to_dict() | {"attn_implementation": "eager"})


class Clip(nn.Module):
    """The cosine of a text and a picture."""

    def __init__(self, **text):
        super().__init__()
        self.model = transformers.CLIPModel(clip_config(layers=1, **text))

    def text(self, ids):
        return functional.normalize(self.model.get_text_features(input_ids=ids), dim=-1)

    def image(self, pixels):
        return functional.normalize(self.model.get_image_features(pixel_values=pixels), dim=-1)

    def forward(self, ids, pixels):
        return (self.text(ids) * self.image(pixels)).sum(-1)


def ended():
    """Texts of different lengths, with the end mark behind each and padding behind that."""
    ids = text() - 1
    for row, end in zip(ids, [4, 6], strict=True):
        row[0], row[end], row[end + 1 :] = 1, VOCAB - 1, 0
    return ids


class Text(nn.Module):
    """CLIP's text tower; only this half is exported."""

    def __init__(self, **more):
        super().__init__()
        self.model = transformers.CLIPTextModelWithProjection(sub(clip_config(**more).text_config))
        self.direction = nn.Parameter(torch.empty(1, 8))

    def forward(self, ids):
        y = self.model(input_ids=ids).text_embeds
        return functional.cosine_similarity(y, self.direction)


def clip_text(opset=14, **more):
    net = weights(Text(**more))
    return Case("CLIP text tower", net, {"ids": ended()}, ["ids"], opset, tables={"ids": VOCAB})


def clip_text_old():
    """Pooling at the largest id, as the first published models do."""
    return clip_text(11, eos_token_id=2)


class Vision(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.model = transformers.CLIPVisionModelWithProjection(sub(clip_config(layers).vision_config))
        self.direction = nn.Parameter(torch.empty(1, 8))

    def forward(self, pixels):
        return functional.cosine_similarity(self.model(pixel_values=pixels).image_embeds, self.direction)


def clip_vit(layers=2):
    return Case("CLIP vision transformer", weights(Vision(layers)), {"pixels": normal(2, 3, 8, 8)}, ["pixels"], 16)


def clip_score():
    inputs = {"ids": ended(), "pixels": normal(2, 3, 8, 8)}
    return Case("CLIP, both towers", weights(Clip()), inputs, ["ids", "pixels"], 17, tables={"ids": VOCAB})


class Bottleneck(nn.Module):
    def __init__(self, wide, inner, stride):
        super().__init__()
        self.convs = nn.ModuleList([nn.Conv2d(wide, inner, 1, bias=False), nn.Conv2d(inner, inner, 3, padding=1, bias=False),
                                    nn.Conv2d(inner, 2 * inner, 1, bias=False)])  # fmt: skip
        self.norms = nn.ModuleList(nn.BatchNorm2d(n) for n in (inner, inner, 2 * inner))
        self.pool = nn.AvgPool2d(stride)
        self.skip = nn.Sequential(nn.AvgPool2d(stride), nn.Conv2d(wide, 2 * inner, 1, bias=False), nn.BatchNorm2d(2 * inner))

    def forward(self, x):
        h = functional.relu(self.norms[0](self.convs[0](x)))
        h = self.pool(functional.relu(self.norms[1](self.convs[1](h))))
        return functional.relu(self.norms[2](self.convs[2](h)) + self.skip(x))


class ClipResNet(nn.Module):
    """CLIP's ResNet: three convolutions, average pooling in place of strides, attention pooling."""

    def __init__(self):
        super().__init__()
        self.stem = nn.ModuleList([nn.Conv2d(3, 4, 3, 2, 1, bias=False), nn.Conv2d(4, 4, 3, padding=1, bias=False)])
        self.norms = nn.ModuleList([nn.BatchNorm2d(4), nn.BatchNorm2d(4)])
        self.body = nn.Sequential(nn.AvgPool2d(2), Bottleneck(4, 4, 1), Bottleneck(8, 4, 2))
        self.place = nn.Parameter(torch.empty(5, 8))
        self.q, self.k, self.v, self.c = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 6)
        self.direction = nn.Parameter(torch.empty(6))

    def pool(self, x):
        x = x.flatten(2).permute(2, 0, 1)
        x = torch.cat([x.mean(0, keepdim=True), x]) + self.place[:, None]
        y, _ = functional.multi_head_attention_forward(
            query=x[:1], key=x, value=x, embed_dim_to_check=8, num_heads=2, q_proj_weight=self.q.weight, k_proj_weight=self.k.weight,
            v_proj_weight=self.v.weight, in_proj_weight=None, in_proj_bias=torch.cat([self.q.bias, self.k.bias, self.v.bias]),
            bias_k=None, bias_v=None, add_zero_attn=False, dropout_p=0.0, out_proj_weight=self.c.weight, out_proj_bias=self.c.bias,
            use_separate_proj_weight=True, training=False, need_weights=False,
        )  # fmt: skip
        return y[0]

    def forward(self, pixels):
        h = pixels
        for conv, norm in zip(self.stem, self.norms, strict=True):
            h = functional.relu(norm(conv(h)))
        y = self.pool(self.body(h))
        return (y / y.norm(dim=1, keepdim=True)) @ self.direction


def clip_resnet():
    about = "CLIP ResNet with attention pooling"
    return Case(about, weights(ClipResNet()), {"pixels": normal(2, 3, 16, 16)}, ["pixels"], 14)


class Decoder(nn.Module):
    """The log-probability of a text by a decoder of transformers, read and predicted."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids):
        mask = causal(ids.shape[1] - 1, self.model.get_input_embeddings().weight)
        logits = self.model(input_ids=ids[:, :-1], attention_mask=mask.expand(ids.shape[0], -1, -1, -1), use_cache=False).logits
        return likelihood(logits, ids[:, 1:])


def decoder(about, model, opset, **how):
    return Case(about, weights(Decoder(model)), {"ids": text()}, ["ids"], opset, tables={"ids": VOCAB}, **how)


def llama_model(**more):
    sizes = {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 16, "use_cache": False}
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**eager(**sizes | more)))


def llama():
    return decoder("LLaMA: RMS norm, rotary embedding, grouped queries, SwiGLU", llama_model(), 17)


def llama_dynamo():
    about = "LLaMA of operator set 23"
    return decoder(about, llama_model(attn_implementation="sdpa", num_hidden_layers=1), 23, dynamo=True)


def gpt2():
    config = transformers.GPT2Config(vocab_size=VOCAB, n_embd=16, n_head=2, n_layer=2, n_positions=16, n_inner=24, use_cache=False, attn_implementation="eager")
    return decoder("GPT-2", transformers.GPT2LMHeadModel(config), 15)


class Plain(nn.Module):
    """torch's own transformer layers, with a table of words that is also the head."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(VOCAB, 16)
        layer = nn.TransformerEncoderLayer(16, 2, 24, 0.0, "gelu", batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)

    def forward(self, ids):
        h = self.body(self.table(ids[:, :-1]), mask=causal(LENGTH - 1, self.table.weight)[0, 0], is_causal=False)
        return likelihood(h @ self.table.weight.T, ids[:, 1:])


def transformer():
    about = "transformer layers of torch, causal"
    return Case(about, weights(Plain()), {"ids": text()}, ["ids"], 21, dynamo=True, tables={"ids": VOCAB})


CASES = {
    "bert": bert, "bert-sdpa": bert_sdpa, "bert-dynamo": bert_dynamo, "clip-text": clip_text, "clip-text-old": clip_text_old,
    "clip-vit": clip_vit, "clip-score": clip_score, "clip-resnet": clip_resnet, "llama": llama, "llama-23": llama_dynamo,
    "gpt2": gpt2, "transformer-21": transformer,
}  # fmt: skip
