"""Tokenizers of all families: committed fixtures are current, and Go agrees with larger ones on many lines."""

import stored
import tokenize_families
from test_tokenize_lines import go_agrees


def test_fixtures_are_current():
    assert stored.stale(tokenize_families.fixture()) == []


def test_full(tmp_path):
    """Ids, offsets and decoded texts; the script itself takes any number of lines."""
    assert len(tokenize_families.write_full(tmp_path, 800, size=1200)) == len(tokenize_families.FAMILIES)
    go_agrees("TestFullReference", "hf", "GRADHOP_TOKENIZER_REFERENCE", tmp_path)
