"""The committed paths of PEZ are what torch computes today."""

import json

import pez_reference
import stored


def test_fixture_is_current():
    assert stored.stale({pez_reference.FIXTURE: pez_reference.fixture()}, pez_reference.SAME) == []


def test_check_notices_a_change(tmp_path, monkeypatch):
    path = tmp_path / pez_reference.FIXTURE
    path.parent.mkdir(parents=True)
    body = json.loads((stored.ROOT / pez_reference.FIXTURE).read_text())
    body["cases"][0]["embeddings"][0][0][0] += 1e-9
    path.write_text(json.dumps(body))
    monkeypatch.setattr(stored, "ROOT", tmp_path)
    assert stored.stale({pez_reference.FIXTURE: pez_reference.fixture()}, pez_reference.SAME) == [pez_reference.FIXTURE]


def test_paths_move():
    """A path on which nothing happens would test nothing."""
    for case in json.loads(pez_reference.fixture())["cases"]:
        assert len({tuple(c) for c in case["codes"]}) > 3, case["name"]
