"""The CLIP tokenizer: committed fixtures are current, and Go agrees on more than 20,000 lines."""

import json

import clip_families
import pytest
import stored
import tokenize_clip
from test_tokenize_lines import DATA, go_agrees
from tokenize_clip_samples import EOT, SOT, hard_lines, plain_lines
from transformers import CLIPTokenizerFast


def test_fixtures_are_current():
    assert stored.stale(tokenize_clip.fixture()) == []


@pytest.mark.parametrize("data", [DATA, None], ids=["canonical", "trained"])
def test_full(tmp_path, data):
    """Ids, offsets and decoded texts; without the data a second trained vocabulary serves."""
    assert len(tokenize_clip.write_full(tmp_path, data)) == 2
    go_agrees("TestFullReference", "clip", "GRADHOP_CLIP_REFERENCE", tmp_path)


@pytest.mark.parametrize("merges_file", [False, True], ids=["tokenizer.json", "vocab.json"])
def test_reference_is_what_transformers_does(tmp_path, merges_file):
    """The settings here equal transformers' own class, for which CLIP models are made."""
    name = "files" if merges_file else "own"
    tok = tokenize_clip.settings()[name]
    model = json.loads(tok.to_str())["model"]
    (tmp_path / "vocab.json").write_text(json.dumps(model["vocab"]))
    (tmp_path / "merges.txt").write_text("#version: 0.2\n" + "".join(" ".join(m) + "\n" for m in model["merges"]))
    tok.save(str(tmp_path / "tokenizer.json"))
    if merges_file:
        theirs = CLIPTokenizerFast(str(tmp_path / "vocab.json"), str(tmp_path / "merges.txt"))
    else:
        theirs = CLIPTokenizerFast(tokenizer_file=str(tmp_path / "tokenizer.json"))
    assert theirs.bos_token == SOT and theirs.eos_token == EOT
    for line in hard_lines() + plain_lines():
        made = theirs(line, add_special_tokens=False, return_offsets_mapping=True)
        ours = tok.encode(line, add_special_tokens=False)
        assert (made["input_ids"], made["offset_mapping"]) == (ours.ids, ours.offsets), line
        decoded = theirs.decode(ours.ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        assert decoded == tokenize_clip.decode(tok, ours.ids), line


@pytest.mark.parametrize("text, ids", [
    ("a photo of a fox", [49406, 320, 1125, 539, 320, 3240, 49407]),
    ("this is a test string of text", [49406, 589, 533, 320, 1628, 9696, 539, 4160, 49407]),
])
def test_fixed_points(tmp_path, text, ids):
    assert clip_families.published(tmp_path)(text)["input_ids"] == ids
