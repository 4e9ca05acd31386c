"""The committed text-metric values are what NLTK computes today."""

import pytest
import stored
import textmetrics_ref


def test_fixture_is_current():
    assert stored.stale({textmetrics_ref.FIXTURE: textmetrics_ref.fixture()}) == []


def test_undefined_is_null():
    assert textmetrics_ref.self_bleu([["a"]]) is None
    assert textmetrics_ref.unique([["a"]], [])[1] is None


def test_known_value():
    # One of seven words is matched twice by the fullest reference: 2/7 of the unigrams, the textbook case.
    samples, refs = [["the"] * 7], [["the", "cat", "is", "on", "the", "mat"]]
    assert textmetrics_ref.unique(samples, refs)[0] == 0
    match = textmetrics_ref.bleu_score.modified_precision(refs, samples[0], 1)
    assert float(match) == pytest.approx(2 / 7)
