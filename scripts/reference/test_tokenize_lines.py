"""The committed tokenizer fixtures are what the script writes today."""

import os
import subprocess

import pytest
import stored
import tokenize_lines

DATA = stored.ROOT.parent / "shared" / "data"


def go_agrees(test, package, variable, folder):
    """Runs a Go test that reads a folder, and fails unless it ran and passed."""
    run = subprocess.run(["go", "test", "-count=1", "-v", "-run", f"^{test}$", "./tokenize/" + package], check=False,
                         cwd=stored.ROOT, env=os.environ | {variable: str(folder)}, capture_output=True, text=True)
    assert run.returncode == 0 and f"--- PASS: {test} " in run.stdout, run.stdout[-4000:] + run.stderr


def test_fixtures_are_current():
    assert stored.stale(tokenize_lines.fixture()) == []


def test_byte_offsets():
    assert tokenize_lines.byte_offsets("aé中😀") == [0, 1, 3, 6, 10]


def test_check_notices_a_change():
    path = "tokenize/hf/testdata/bert/vocab.txt"
    assert stored.stale({path: "other\n", "absent": ""}) == [path, "absent"]


@pytest.mark.parametrize("data", [DATA, None], ids=["canonical", "fixture"])
def test_full(tmp_path, data):
    """Ids, offsets and decoded texts; without the data the fixtures' vocabulary serves twice."""
    assert len(tokenize_lines.write_full(tmp_path, data)) == 2
    go_agrees("TestBERTFullReference", "hf", "GRADHOP_BERT_REFERENCE", tmp_path)


def test_full_notices_a_change(tmp_path):
    tokenize_lines.write_full(tmp_path)
    lines = tmp_path / "vocab-txt" / "lines.jsonl"
    for part, change in (("tokens", [[7, 0, 1]]), ("decoded", "other"), ("ids_decoded", "other")):
        rows = lines.read_text()
        row = tokenize_lines.json.loads(rows.splitlines()[-1]) | {part: change}
        lines.write_text(rows[:rows.rstrip().rindex("\n") + 1] + tokenize_lines.json.dumps(row) + "\n")
        with pytest.raises(AssertionError, match="1 of .* lines differ"):
            go_agrees("TestBERTFullReference", "hf", "GRADHOP_BERT_REFERENCE", tmp_path)
        lines.write_text(rows)
