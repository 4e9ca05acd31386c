"""The stored values of the masked-language-model energies are what the script computes today."""

import json
import shutil

import bert_reference as ref
import numpy as np
import onnx
import onnxruntime
import pytest
import stored
import torch


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fresh")
    ref.write(folder)
    return folder


def test_fixtures_are_current(fresh):
    assert stored.stale_folder(ref.FOLDER, fresh, ref.SAME) == []


def test_check_notices_a_change(fresh, tmp_path):
    shutil.copytree(fresh, tmp_path, dirs_exist_ok=True)
    values = json.loads((tmp_path / "bert/reference.json").read_text())
    values["texts"][0]["values"]["mrf/mask"]["u"][0] *= 1 + 1e-5
    (tmp_path / "bert/reference.json").write_text(json.dumps(values))
    model = onnx.load(tmp_path / "bad/good.onnx")
    model.graph.node[1].op_type = "Erf"
    onnx.save(model, tmp_path / "bad/good.onnx")
    (tmp_path / "bad/fixed.onnx").unlink()
    assert stored.stale_folder(tmp_path, fresh, ref.SAME) == ["bad/fixed.onnx", "bad/good.onnx", "bert/reference.json"]


@pytest.mark.parametrize("name", [*ref.CASES, *ref.HALF_CASES])
def test_models_run(fresh, name):
    """Any batch and length, and the logits of torch."""
    model = ref.tiny() if name in ref.CASES else ref.halved()
    session = onnxruntime.InferenceSession(fresh / "bert" / name / "model.onnx")
    for batch, length in ((1, 9), (3, 5)):
        ids = np.random.default_rng(0).integers(0, ref.VOCAB, (batch, length))
        feed = {i.name: np.ones_like(ids, "i4" if "int32" in i.type else "i8") for i in session.get_inputs()}
        feed["input_ids"] = ids.astype(feed["input_ids"].dtype)
        if "token_type_ids" in feed:
            feed["token_type_ids"] *= 0
        with torch.no_grad():
            want = model(torch.tensor(ids), attention_mask=torch.ones(ids.shape)).logits.numpy()
        tolerance = 0.05 if name == "float16" else 2e-5
        np.testing.assert_allclose(session.run(None, feed)[0], want, atol=tolerance)


@pytest.mark.parametrize("name", ref.ENERGIES)
def test_gradient_is_that_of_finite_differences(name):
    """One-hot rows along the line between two words, without building one: see probe."""
    model = ref.tiny().double()
    text = ref.TEXTS[1]
    u, grad, scores = ref.energy(model, text, text["fillings"][0], name, ref.MASK)
    table = model.bert.embeddings.word_embeddings.weight
    step, word, other = 1e-6, text["fillings"][0][0], 11
    up = probe(model, text, name, table[word] + step * (table[other] - table[word]))
    slope = (up - u) / step + float(scores[0, other] - scores[0, word])  # U is linear in the row where it scores
    assert slope == pytest.approx(float(grad[0, other] - grad[0, word]), rel=1e-4)


def probe(model, text, name, vector):
    """U with another vector in place of the first blank's embedding; its own score is left as it was."""
    form, embedding = name.split("/")
    table, blanks, filling = model.bert.embeddings.word_embeddings.weight, text["blanks"], text["fillings"][0]
    total = 0.0
    for masked in [None] if form == "mrf" else range(len(blanks)):
        ids = torch.tensor(text["ids"])
        ids[blanks] = torch.tensor(filling)
        rows = table[ids].detach().clone()
        rows[blanks[0]] = vector
        if masked is not None:
            rows[blanks[masked]] = table[ref.MASK].detach() * (embedding == "mask")
        logits = model(inputs_embeds=rows[None]).logits[0]
        logits = logits.log_softmax(-1) if form == "pll" else logits
        chosen = range(len(blanks)) if masked is None else [masked]
        total += sum(logits[blanks[i], filling[i]].item() for i in chosen)
    return total
