"""Exports a small model with random weights of each family and compares it with PyTorch."""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess

import bert_reference
import onnx
import pytest
import stored
import torch
import transformers as tf

from scripts import export_mlm

COMMON = {"vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
ROBERTA = {**COMMON, "max_position_embeddings": 66, "type_vocab_size": 1, "pad_token_id": 1}
RELATIVE = {"relative_attention": True, "position_buckets": 8, "max_relative_positions": -1, "position_biased_input": False,
            "pos_att_type": ["p2c", "c2p"], "norm_rel_ebd": "layer_norm", "share_att_key": True}  # fmt: skip
FAMILIES = {
    "bert": (tf.BertConfig(**COMMON, max_position_embeddings=64), 3),
    "distilbert": (tf.DistilBertConfig(vocab_size=99, dim=32, n_layers=2, n_heads=4, hidden_dim=48, max_position_embeddings=64), 2),
    "electra": (tf.ElectraConfig(**COMMON, embedding_size=16, max_position_embeddings=64), 3),
    "roberta": (tf.RobertaConfig(**ROBERTA), 2),
    "xlm-roberta": (tf.XLMRobertaConfig(**ROBERTA), 2),
    "camembert": (tf.CamembertConfig(**ROBERTA), 2),
    "albert": (tf.AlbertConfig(**COMMON, embedding_size=16, max_position_embeddings=64), 3),
    "deberta-v2": (tf.DebertaV2Config(**COMMON, **RELATIVE, conv_kernel_size=3, conv_act="gelu", type_vocab_size=0), 2),
    "deberta-v3": (tf.DebertaV2Config(**COMMON, **RELATIVE, type_vocab_size=0), 2),
    "modernbert": (tf.ModernBertConfig(**COMMON, max_position_embeddings=64, local_attention=8, global_attn_every_n_layers=2,
                                       pad_token_id=0, bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2), 2),
    "esm": (tf.EsmConfig(**COMMON, max_position_embeddings=66, position_embedding_type="rotary", pad_token_id=1, mask_token_id=4,
                         token_dropout=True, emb_layer_norm_before=False), 2),
}  # fmt: skip


def random_model(config):
    """Weights larger than those of transformers, with which a wrong graph would pass."""
    torch.manual_seed(0)
    config._attn_implementation = "eager"
    model = tf.AutoModelForMaskedLM.from_config(config, attn_implementation="eager").eval()
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn_like(p) * 0.2)
    return model


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """Exports a family once, to <folder>/<family>/model.onnx; returns the model, the folder and the error."""
    folder = tmp_path_factory.mktemp("families")

    @functools.cache
    def export(family):
        model = random_model(FAMILIES[family][0])
        (folder / family).mkdir()
        return model, folder, export_mlm.export(model, folder / family / "model.onnx")

    return export


@pytest.mark.parametrize("family", FAMILIES)
def test_family(family, exported):
    inputs = FAMILIES[family][1]
    _, folder, error = exported(family)
    path = folder / family / "model.onnx"
    assert error < 1e-4
    graph = onnx.load(path).graph
    assert [i.name for i in graph.input] == ["input_ids", "attention_mask", "token_type_ids"][:inputs]
    for value in [*graph.input, graph.output[0]]:
        assert [d.dim_param for d in value.type.tensor_type.shape.dim][:2] == ["batch", "sequence"]
    assert graph.output[0].name == "logits"


def test_energies(exported):
    """Go computes U and the one-hot gradient of each family as torch does in float64.

    test_bert_reference shows that a wrong value fails the same Go test."""
    texts = bert_reference.texts(99, 5, 6, 7, [(5, [2], 2), (12, [3, 4, 8], 2)])
    for family in FAMILIES:
        model, folder, _ = exported(family)
        values = bert_reference.reference(model, [family], texts, 4, ["pll/mask", "mrf/mask"])
        (folder / f"reference-{family}.json").write_text(json.dumps(values))
    command = ["go", "test", "./energies/neural/mlm", "-run", "TestExternalReference", "-count=1", "-v"]
    run = subprocess.run(command, cwd=stored.ROOT, env={**os.environ, "GRADHOP_BERT_REFERENCE": str(folder)}, capture_output=True,
                         text=True, check=False)  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr
    errors = re.findall(r"relative errors: U (\S+), gradient (\S+);", run.stdout)
    assert len(errors) == 2 * len(FAMILIES) and max(float(e) for pair in errors for e in pair) < 1e-5, run.stdout
    for family in FAMILIES:
        for form in ("pll", "mrf"):
            assert f"--- PASS: TestExternalReference/{family}/{form}/mask/1" in run.stdout


def test_difference_sees_a_wrong_file(tmp_path):
    model = random_model(FAMILIES["bert"][0])
    path = tmp_path / "model.onnx"
    export_mlm.export(model, path)
    with torch.no_grad():
        model.bert.encoder.layer[1].output.dense.weight.mul_(1.1)
    assert export_mlm.difference(model, export_mlm.input_names(model), path) > 1e-3


def test_external_data(tmp_path, monkeypatch):
    monkeypatch.setattr(export_mlm, "LARGEST", 1000)
    assert export_mlm.export(random_model(FAMILIES["roberta"][0]), tmp_path / "model.onnx") < 1e-4
    assert (tmp_path / "model.onnx_data").stat().st_size > 10_000
    assert sorted(f.name for f in tmp_path.iterdir()) == ["model.onnx", "model.onnx_data"]


def test_no_head(tmp_path):
    """A checkpoint without the head would get a random one."""
    config = FAMILIES["deberta-v3"][0]
    tf.AutoModel.from_config(config).save_pretrained(tmp_path)
    with pytest.raises(SystemExit, match="no weights for cls.predictions"):
        export_mlm.load(str(tmp_path))


@pytest.mark.parametrize("family", FAMILIES)
def test_head_is_found(family, tmp_path, monkeypatch):
    config, _ = FAMILIES[family]
    random_model(config).save_pretrained(tmp_path)
    monkeypatch.setattr(export_mlm.AutoTokenizer, "from_pretrained", lambda *_: None)
    model, _ = export_mlm.load(str(tmp_path))
    assert model.config.model_type == config.model_type


def test_command(tmp_path, monkeypatch, capsys):
    """The whole command, on a folder with a tokenizer."""
    source, out = tmp_path / "source", tmp_path / "out"
    random_model(FAMILIES["bert"][0]).save_pretrained(source)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + [f"w{i}" for i in range(94)]
    (tmp_path / "vocab.txt").write_text("\n".join(words) + "\n")
    tf.BertTokenizerFast(str(tmp_path / "vocab.txt")).save_pretrained(source)
    monkeypatch.setattr("sys.argv", ["export_mlm.py", "--model", str(source), "--out", str(out), "--dtype", "float16-weights"])
    export_mlm.main()
    assert "logits equal PyTorch's within" in capsys.readouterr().out
    assert {"model.onnx", "config.json", "tokenizer.json", "tokenizer_config.json", "vocab.txt"} <= {f.name for f in out.iterdir()}
