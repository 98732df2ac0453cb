"""The same objective as CRFsuite: same features, same regularizer, one by its trainer, one by ours."""

from itertools import pairwise

import numpy as np
import pycrfsuite
import pytest

from bmrm.data.readers.conll import Conll, read_conll
from bmrm.losses import LOSSES
from bmrm.regularizers.l2 import L2
from bmrm.risk.linear import LinearRisk
from bmrm.solvers import SOLVERS


def crfsuite(data, vocabulary, c2, folder):
    """What its L-BFGS says is the minimum of -log likelihood + c2 ||w||^2, and its labels for the training data."""
    X, groups = data.X, data.targets.groups
    borders = [0, *(np.flatnonzero(np.diff(groups)) + 1).tolist(), data.rows]
    rows = [[vocabulary.names[j] for j in X.indices[a:b]] for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)]
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
    for a, b in pairwise(borders):
        trainer.append(rows[a:b], data.targets.y[a:b].tolist())
    every = {"feature.possible_states": True, "feature.possible_transitions": True}
    trainer.set_params({"c1": 0.0, "c2": c2, "epsilon": 1e-6, "delta": 1e-9, "max_iterations": 2000} | every)
    model = str(folder / "model.crf")
    trainer.train(model)
    tagger = pycrfsuite.Tagger()
    tagger.open(model)
    found = [label for a, b in pairwise(borders) for label in tagger.tag(rows[a:b])]
    return trainer.logparser.last_iteration["loss"], np.array(found)


def compare(path, options, c2, folder):
    data, vocabulary = read_conll(path, options)
    sentences = len(np.unique(data.targets.groups))
    loss, lam = LOSSES.make("chain_crf"), 2.0 * c2 / sentences
    risk = LinearRisk(data, loss)
    solution = SOLVERS.make("lbfgs", {"tolerance": 1e-7}).minimize(risk, L2(lam))
    assert solution.converged
    peer, peer_labels = crfsuite(data, vocabulary, c2, folder)
    print(f"ours / CRFsuite - 1 = {solution.objective * sentences / peer - 1.0:.1e}")
    assert solution.objective * sentences == pytest.approx(peer, rel=1e-5)
    assert solution.lower_bound * sentences <= peer * (1.0 + 1e-9)
    labels = risk.summary.labels
    own = len(labels) ** 2
    table = data.X.to_scipy() @ solution.w[:-own].reshape(-1, len(labels))
    transitions = solution.w[-own:].reshape(len(labels), len(labels))
    found = loss.predict(table, labels, transitions, data.targets.groups)
    assert np.mean(found == peer_labels) > 0.999


def test_generated_sentences(tmp_path):
    rng = np.random.default_rng(0)
    lines = []
    for _ in range(80):
        words = rng.integers(0, 15, size=int(rng.integers(1, 9)))
        for before, word in zip([0, *words], words, strict=False):
            label = (word + (before == 3)) % 3 if rng.random() < 0.85 else 0
            lines.append(f"w{word} t{word % 4} L{label}\n")
        lines.append("\n")
    path = tmp_path / "generated.txt"
    path.write_text("".join(lines))
    compare(path, Conll(templates="w=%x[0,0]\nv=%x[-1,0]|%x[0,1]"), 0.5, tmp_path)


@pytest.mark.slow
@pytest.mark.shared_data
def test_a_slice_of_conll_2000(tmp_path, shared_data):
    import lzma

    text = lzma.decompress((shared_data / "conll2000.train.txt.xz").read_bytes()).decode()
    path = tmp_path / "slice.txt"
    path.write_text("\n\n".join(text.split("\n\n")[:400]))
    compare(path, Conll(min_count=2), 1.0, tmp_path)
