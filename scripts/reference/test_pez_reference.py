"""The committed paths of PEZ are what torch computes today."""

import json

import pez_reference


def test_fixture_is_current():
    assert not pez_reference.is_stale()


def test_check_notices_a_change(tmp_path, monkeypatch):
    path = tmp_path / pez_reference.FIXTURE
    path.parent.mkdir(parents=True)
    body = json.loads((pez_reference.ROOT / pez_reference.FIXTURE).read_text())
    body["cases"][0]["embeddings"][0][0][0] += 1e-9
    path.write_text(json.dumps(body))
    monkeypatch.setattr(pez_reference, "ROOT", tmp_path)
    assert pez_reference.is_stale()


def test_paths_move():
    """A path on which nothing happens would test nothing."""
    for case in json.loads(pez_reference.fixture())["cases"]:
        assert len({tuple(c) for c in case["codes"]}) > 3, case["name"]
