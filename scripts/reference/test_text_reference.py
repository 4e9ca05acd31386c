"""The stored values of the energies of whole texts are what the script computes today."""

import json

import stored
import text_reference as ref


def test_fixtures_are_current(tmp_path):
    ref.write(tmp_path)
    assert stored.stale_folder(ref.FOLDER, tmp_path, ref.SAME) == []
    values = json.loads((tmp_path / "llama/reference.json").read_text())
    values["texts"][1]["u"][0] *= 1 + 1e-5
    (tmp_path / "llama/reference.json").write_text(json.dumps(values))
    (tmp_path / "gpt2/model.onnx").write_bytes((tmp_path / "gpt2-past/model.onnx").read_bytes())
    assert stored.stale_folder(ref.FOLDER, tmp_path, ref.SAME) == ["gpt2/model.onnx", "llama/reference.json"]
