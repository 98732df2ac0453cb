"""Chunks and their F1 by the definition of CoNLL."""

import numpy as np
import pytest

from bmrm.metrics import ScoredRows, evaluate
from bmrm.metrics.sequences import Counts, chunks, counts_of_chunks, counts_of_tokens, total


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ("B-NP I-NP O B-VP", {(0, 1, "NP"), (3, 3, "VP")}),
        ("B-NP B-NP I-NP", {(0, 0, "NP"), (1, 2, "NP")}),
        ("I-NP I-NP O I-NP", {(0, 1, "NP"), (3, 3, "NP")}),  # IOB1: a chunk may begin with I
        ("I-NP B-NP", {(0, 0, "NP"), (1, 1, "NP")}),
        ("B-NP I-VP", {(0, 0, "NP"), (1, 1, "VP")}),
        ("O I-VP I-VP I-NP", {(1, 2, "VP"), (3, 3, "NP")}),
        ("B-A I-A E-A E-A S-B U-B", {(0, 2, "A"), (3, 3, "A"), (4, 4, "B"), (5, 5, "B")}),
        ("B I I O I", {(0, 2, ""), (4, 4, "")}),
        ("NN NN VB", {(0, 1, "NN"), (2, 2, "VB")}),
        ("O O", set()),
        ("B-A-B I-A-B", {(0, 1, "A-B")}),
    ],
)
def test_chunks(labels, expected):
    assert chunks(labels.split(), [0]) == expected


def test_chunks_end_with_sentences():
    assert chunks(["B-NP", "I-NP", "I-NP"], [0, 2]) == {(0, 1, "NP"), (2, 2, "NP")}


def test_f1_of_chunks_by_hand():
    truth = ["B-NP", "I-NP", "O", "B-VP", "B-NP", "O"]
    found = ["B-NP", "I-NP", "O", "B-VP", "I-VP", "B-NP"]
    # 3 true chunks, 3 found, in common: the first
    by_type = counts_of_chunks(truth, found, [0])
    assert by_type == {"NP": Counts(2.0, 2.0, 1.0), "VP": Counts(1.0, 1.0, 0.0)}
    assert (by_type["NP"].precision, by_type["NP"].recall, by_type["NP"].f1) == (0.5, 0.5, 0.5)
    assert total(by_type.values()).f1 == pytest.approx(2 * 1 / 6)
    assert total(counts_of_chunks(truth, truth, [0]).values()).f1 == 1.0
    assert total(counts_of_chunks(["O"], ["O"], [0]).values()).f1 == 0.0


def test_f1_of_tokens_by_hand():
    truth, found = np.array(["O", "A", "A", "B"]), np.array(["A", "A", "O", "B"])
    assert counts_of_tokens(truth, found).f1 == pytest.approx(2 * 2 / (3 + 3))


def test_measures_of_scored_tokens():
    names = ("B-NP", "I-NP", "O")
    y, predicted = np.array([0, 1, 2, 0, 3]), np.array([0, 1, 2, 1, 1])
    scored = ScoredRows(y, np.zeros((5, 3)), predicted, None, 3, {}, np.array([0, 0, 0, 1, 1]), names)
    values = evaluate(["token_accuracy", "token_f1", "chunk_f1"], scored)
    assert values["token_accuracy"] == pytest.approx(3 / 5)
    assert values["token_f1"] == pytest.approx(2 * 2 / (4 + 4))
    # true: (0,1), (3,3), and an unknown label; found: (0,1), (3,4)
    assert values["chunk_f1"] == pytest.approx(2 * 1 / (3 + 2))
