"""The committed ONNX fixtures are what the script writes today, and good where they should be."""

import numpy as np
import onnx
import onnx_fixtures
import onnxruntime
import pytest
import stored


def test_fixtures_are_current():
    assert stored.stale(onnx_fixtures.fixtures()) == []


def test_check_notices_a_change(tmp_path, monkeypatch):
    monkeypatch.setattr(stored, "ROOT", tmp_path)
    (tmp_path / "a").write_bytes(b"old")
    assert stored.stale({"a": b"new", "absent": b""}) == ["a", "absent"]


@pytest.mark.parametrize("name", ["branches", "half", "local", "outside"])
def test_runnable_fixtures_are_valid(name):
    onnx.checker.check_model(stored.ROOT / onnx_fixtures.FOLDER / f"{name}.onnx", full_check=True)


def test_half_runs():
    path = stored.ROOT / onnx_fixtures.FOLDER / "half.onnx"
    x = np.linspace(-1, 1, 6, dtype="f4").reshape(2, 3)
    y, z, _ = onnxruntime.InferenceSession(path).run(None, {"x": x, "c": np.array(True)})
    assert y.dtype == np.float32 and z.dtype == np.float16


def test_typed_equals_raw():
    raw, typed = onnx_fixtures.typed(True), onnx_fixtures.typed(False)
    for a, b in zip(raw.graph.initializer, typed.graph.initializer, strict=True):
        assert not b.HasField("raw_data")
        np.testing.assert_array_equal(onnx.numpy_helper.to_array(a), onnx.numpy_helper.to_array(b))
