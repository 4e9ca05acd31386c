"""The committed table of operators is what the script writes today."""

import onnx
import operators
import stored


def test_table_is_current():
    assert stored.stale({operators.FILE: operators.table()}) == []


def test_check_notices_a_change(tmp_path, monkeypatch):
    monkeypatch.setattr(stored, "ROOT", tmp_path)
    assert stored.stale({operators.FILE: operators.table()}) == [operators.FILE]
    (tmp_path / "onnx").mkdir()
    (tmp_path / operators.FILE).write_text(operators.table() + "more")
    assert stored.stale({operators.FILE: operators.table()}) == [operators.FILE]


def test_rows():
    by_name = {r[:2]: r[2:] for r in operators.rows()}
    assert by_name["ai.onnx", "Slice"] == ("1,10,11,13", "", "axes:ints,ends:ints,starts:ints")
    assert by_name["ai.onnx", "Upsample"][:2] == ("1,7,9,10", "10")
    assert by_name["ai.onnx.ml", "Scaler"][:2] == ("1", "")
    schema = onnx.defs.get_schema("Pad", 18)
    assert str(schema.since_version) in by_name["ai.onnx", "Pad"][0].split(",")
