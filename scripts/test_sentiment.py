"""The recipe of the guide learns what a few words mean, and its file has the logits of torch."""

import json

import numpy as np
import onnxruntime
from scripts import sentiment


def test_recipe(tmp_path):
    words = {0: ["bad", "poor", "dull", "awful"], 1: ["good", "great", "fine", "lovely"]}
    rng = np.random.default_rng(0)
    for label, name in enumerate(["neg", "pos"]):
        texts = [f"the {rng.choice(words[label])} book was {rng.choice(words[label])} to read ." for _ in range(200)]
        (tmp_path / name).write_text("\n".join(texts) + "\n")
    out = tmp_path / "guide"
    right = sentiment.main(["--positive", str(tmp_path / "pos"), "--negative", str(tmp_path / "neg"), "--model", "models/data/bert-books", "--out", str(out)])
    assert right > 0.95
    config = json.loads((out / "config.json").read_text())
    assert config["id2label"] == {"0": "negative", "1": "positive"}
    session = onnxruntime.InferenceSession(out / "model.onnx")
    ids = np.array([[5, 900, 901, 7], [5, 902, 903, 7]])
    both = session.run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids)})[0]
    one = session.run(None, {"input_ids": ids[1:], "attention_mask": np.ones_like(ids[1:])})[0]
    np.testing.assert_allclose(both[1:], one, atol=1e-5)
