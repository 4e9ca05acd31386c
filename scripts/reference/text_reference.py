"""Reference values of energies of models that read whole texts, by torch autograd in float64.

    text_reference.py            write energies/neural/text/testdata
    text_reference.py --check    regenerate; exit 1 if a value or a file is no longer what is stored

Blanks are one-hot rows O [blank, word] that require a gradient: the model reads O @ W in place of its word embeddings W[ids], and a causal
model's term for the blank i is <O[i], log p(. | before)>. transformers' own loss gives U of a causal model a second time.
"""

from __future__ import annotations

import copy
import json
import pathlib
import sys
import warnings

import torch
import transformers as tf

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import stored
from bert_reference import far, pack, same_model, texts, unpack

FOLDER = stored.ROOT / "energies/neural/text/testdata"
VOCAB = 60
CHOSEN = texts(VOCAB, 1, 2, 5, [(5, [2], 2), (9, [1, 6, 8], 3), (7, [0, 3], 2)])


def gpt2():
    return tf.GPT2LMHeadModel(tf.GPT2Config(vocab_size=VOCAB, n_positions=32, n_embd=16, n_layer=2, n_head=2, attn_implementation="eager"))


def llama():
    return tf.LlamaForCausalLM(tf.LlamaConfig(
        vocab_size=VOCAB, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        max_position_embeddings=32, attn_implementation="eager"))  # fmt: skip


def bert():
    return tf.BertForSequenceClassification(tf.BertConfig(
        vocab_size=VOCAB, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=24, max_position_embeddings=32, num_labels=3,
        attn_implementation="eager"))  # fmt: skip


# name: the model, how its file takes tokens, and what U is
CASES = {
    "gpt2": (gpt2, ["input_ids", "attention_mask", "position_ids"], "causal"),
    "gpt2-past": (gpt2, ["input_ids", "attention_mask", "past"], "causal"),
    "llama": (llama, ["input_ids", "attention_mask"], "causal"),
    "bert": (bert, ["input_ids", "attention_mask", "token_type_ids"], "label 2"),
    "bert-multi": (bert, ["input_ids", "attention_mask"], "multi 1"),
}


def random(make):
    """The model with larger random weights than it begins with, so that words matter."""
    torch.manual_seed(5)
    model = make().eval()
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.3 * torch.randn_like(p))
    return model


class Logits(torch.nn.Module):
    """The model with inputs by position, among them keys and values of earlier tokens, and logits as its only output."""

    def __init__(self, model, names):
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *tensors):
        given = dict(zip(self.names, tensors))
        past = tensors[len(self.names) :]
        if past:
            given["past_key_values"] = tf.DynamicCache.from_legacy_cache(tuple(zip(past[::2], past[1::2])))
        if hasattr(self.model, "lm_head"):
            given["use_cache"] = bool(past)
            # The model's own mask cannot be traced.
            seen = torch.arange(given["attention_mask"].shape[1])
            here = seen[-given["input_ids"].shape[1] :]
            allowed = (seen[None] <= here[:, None])[None, None] & given["attention_mask"].bool()[:, None, None]
            given["attention_mask"] = torch.where(allowed, 0.0, torch.finfo(torch.float32).min)
        return self.model(**given, return_dict=True).logits


def export(model, names, path):
    keep = [n for n in names if n != "past"]
    ids = torch.randint(5, VOCAB, (2, 6))
    values = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "token_type_ids": torch.zeros_like(ids), "position_ids": torch.arange(6).repeat(2, 1)}
    args, axes = [values[n] for n in keep], {n: {0: "batch", 1: "sequence"} for n in keep}
    if "past" in names:
        values["attention_mask"] = torch.ones(2, 9, dtype=torch.int64)
        args = [values[n] for n in keep]
        axes["attention_mask"] = {0: "batch", 1: "total"}
        for layer in range(model.config.n_layer):
            for kind in ("key", "value"):
                keep.append(f"past_key_values.{layer}.{kind}")
                axes[keep[-1]] = {0: "batch", 2: "past"}
                args.append(torch.randn(2, 2, 3, 8))
    wrapped = Logits(model, [n for n in names if n != "past"]).eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(wrapped, tuple(args), str(path), input_names=keep, output_names=["logits"], dynamic_axes=axes | {"logits": {0: "batch"}},
                          opset_version=17, dynamo=False)  # fmt: skip


def energy(model, what, text, filling):
    """U and its gradient [blank, word] at one filling."""
    words = model.get_input_embeddings()
    table, blanks = words.weight.detach(), text["blanks"]
    ids = torch.tensor(text["ids"])
    ids[blanks] = torch.tensor(filling)
    one_hot = torch.nn.functional.one_hot(torch.tensor(filling), VOCAB).to(table.dtype).requires_grad_()
    rows = list(table[ids])
    for i, p in enumerate(blanks):
        rows[p] = one_hot[i] @ table
    hook = words.register_forward_hook(lambda *_: torch.stack(rows)[None])
    logits = model(input_ids=ids[None], attention_mask=torch.ones_like(ids)[None]).logits[0]
    hook.remove()
    kind, _, label = what.partition(" ")
    if kind == "causal":
        u = 0.0
        for p in range(1, len(ids)):
            lp = torch.log_softmax(logits[p - 1], 0)
            u = u + (one_hot[blanks.index(p)] @ lp if p in blanks else lp[ids[p]])
        loss = model(input_ids=ids[None], labels=ids[None]).loss * (len(ids) - 1)
        assert abs(u + loss) < 1e-5 * loss, (u, loss)  # which is of float32
    elif kind == "multi":
        u = torch.nn.functional.logsigmoid(logits[int(label)])
    else:
        u = torch.log_softmax(logits, 0)[int(label)]
    (grad,) = torch.autograd.grad(u, one_hot)
    return u.item(), grad


def write(folder):
    for name, (make, names, what) in CASES.items():
        model = random(make)
        (folder / name).mkdir(parents=True, exist_ok=True)
        export(model, names, folder / name / "model.onnx")
        double = copy.deepcopy(model).double()
        for p in double.parameters():
            p.requires_grad_(False)
        out = []
        for text in CHOSEN:
            got = [energy(double, what, text, f) for f in text["fillings"]]
            out.append({**text, "u": [u for u, _ in got], "grad": pack([g for _, g in got])})
        (folder / name / "reference.json").write_text(json.dumps({"vocabulary": VOCAB, "energy": what, "texts": out}, indent=0) + "\n")


def same_values(a, b):
    """The same texts and fillings, with values that agree to the tolerance."""
    old, new = (json.loads(p.read_text()) for p in (a, b))
    for x, y in zip(old["texts"], new["texts"], strict=True):
        if far(x.pop("u"), y.pop("u")) or far(unpack(x.pop("grad")), unpack(y.pop("grad"))):
            return False
    return old == new


SAME = {".json": same_values, ".onnx": same_model}

if __name__ == "__main__":
    stored.finish_folder(stored.command_line(__doc__).parse_args().check, "scripts/reference/text_reference.py", FOLDER, write, SAME)
