"""The committed convergence diagnostics are what ArviZ computes today."""

import json

import diag_ref
import pytest
import stored


def test_fixture_is_current():
    assert stored.stale({diag_ref.FIXTURE: diag_ref.fixture()}, diag_ref.SAME) == []


def test_check_notices_a_change(tmp_path, monkeypatch):
    path = tmp_path / diag_ref.FIXTURE
    path.parent.mkdir(parents=True)
    body = json.loads((stored.ROOT / diag_ref.FIXTURE).read_text())
    body["cases"][0]["rhat"] *= 1 + 1e-9
    path.write_text(json.dumps(body))
    monkeypatch.setattr(stored, "ROOT", tmp_path)
    assert stored.stale({diag_ref.FIXTURE: diag_ref.fixture()}, diag_ref.SAME) == [diag_ref.FIXTURE]


def test_known_values():
    """Independent draws are worth about their number; a shifted chain is seen."""
    by_name = {c["name"]: c for c in json.loads(diag_ref.fixture())["cases"]}
    assert by_name["independent"]["ess_bulk"] == pytest.approx(400, rel=0.3)
    assert by_name["shifted chain"]["rhat"] > 1.2
    assert by_name["one chain"]["rhat"] is None
