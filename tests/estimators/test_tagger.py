"""Sequences in every form, and python-crfsuite at equal settings."""

import itertools
import pickle

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import bmrm
from bmrm.estimators import SequenceTagger

WORDS = [
    "the cat sat on a mat",
    "a dog ran",
    "the old man saw the big dog in a park",
    "dogs bark",
    "she sat",
    "a man in the park ran",
]
TAGS = {"the": "D", "a": "D", "cat": "N", "mat": "N", "dog": "N", "man": "N", "park": "N", "dogs": "N", "she": "N"}
TAGS |= {"sat": "V", "ran": "V", "saw": "V", "bark": "V", "on": "P", "in": "P", "old": "A", "big": "A"}
X = [text.split() for text in WORDS]
Y = [[TAGS[word] for word in sentence] for sentence in X]


def features(sentence):
    """As a user of sklearn-crfsuite writes them."""
    return [
        {"word": word, "suffix": word[-2:], "length": len(word) / 10.0, "first": k == 0, "bias": 1.0}
        for k, word in enumerate(sentence)
    ]


DICTS = [features(sentence) for sentence in X]


def test_texts_with_templates():
    tagger = SequenceTagger(alpha=1e-3).fit(X, Y)
    assert tagger.predict(X) == Y
    assert tagger.score(X, Y) == 1.0
    assert list(tagger.classes_) == ["A", "D", "N", "P", "V"]
    assert tagger.transitions_.shape == (5, 5)
    assert tagger.coef_.shape == (5, tagger.n_features_in_)
    assert [len(labels) for labels in tagger.predict([["unheard", "of"], [], ["cat"]])] == [2, 0, 1]
    pairs = [[(word, word[-1]) for word in sentence] for sentence in X]
    assert SequenceTagger(templates="w=%x[0,0]\ne=%x[-1,1]", alpha=1e-3).fit(pairs, Y).predict(pairs) == Y


def test_a_saved_tagger_reads_files(tmp_path):
    tagger = SequenceTagger(alpha=1e-3).fit(X, Y)
    tagger.model_.save(tmp_path / "tagger.npz")
    (tmp_path / "new.conll").write_text("\n\n".join("\n".join(sentence) for sentence in X) + "\n")
    model = bmrm.load_model(tmp_path / "tagger.npz")
    assert model.predict(model.read(tmp_path / "new.conll")).tolist() == list(itertools.chain(*Y))


def test_crfsuite_finds_the_same_model(tmp_path):
    pycrfsuite = pytest.importorskip("pycrfsuite")
    c2 = 0.5
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
    for sentence, labels in zip(DICTS, Y):
        trainer.append(pycrfsuite.ItemSequence(sentence), labels)
    options = {"c1": 0.0, "c2": c2, "epsilon": 1e-9, "delta": 1e-12, "max_iterations": 2000}
    options |= {"feature.possible_states": True, "feature.possible_transitions": True}
    trainer.set_params(options)
    trainer.train(str(tmp_path / "crf"))
    theirs = pycrfsuite.Tagger()
    theirs.open(str(tmp_path / "crf"))
    ours = SequenceTagger(alpha=2 * c2 / len(X), tol=1e-12).fit(DICTS, Y)
    labels = list(ours.classes_)
    for (before, after), weight in theirs.info().transitions.items():
        assert ours.transitions_[labels.index(before), labels.index(after)] == pytest.approx(weight, abs=1e-4)
    for sentence, marginals in zip(DICTS, ours.predict_marginals(DICTS)):
        theirs.set(pycrfsuite.ItemSequence(sentence))
        for t, token in enumerate(marginals):
            for label, p in token.items():
                assert p == pytest.approx(theirs.marginal(label, t), abs=1e-5)


def test_marginals_are_sums_over_all_labelings():
    tagger = SequenceTagger(alpha=1e-2, loss={"name": "chain_crf", "transitions": "constant"}).fit(DICTS, Y)
    sentence = DICTS[1]
    (f,) = [tagger.model_.decision_function(tagger._form.rows([sentence], np.array([3])))]
    mass = np.zeros((3, 5))
    for labeling in itertools.product(range(5), repeat=3):
        score = sum(f[t, k] for t, k in enumerate(labeling))
        score += sum(tagger.transitions_[i, j] for i, j in itertools.pairwise(labeling))
        for t, k in enumerate(labeling):
            mass[t, k] += np.exp(score)
    np.testing.assert_allclose(tagger.predict_proba([sentence])[0], mass / mass.sum(axis=1, keepdims=True), rtol=1e-9)


def test_margins_have_no_probabilities():
    tagger = SequenceTagger("chain_margin", alpha=1e-2).fit(DICTS, Y)
    assert tagger.predict(DICTS) == Y
    assert not hasattr(tagger, "predict_marginals")


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_arrays(form):
    random = np.random.default_rng(0)
    X = [random.normal(size=(n, 4)) for n in (3, 1, 5, 4)]
    y = [np.where(rows[:, 0] > 0, 2, 1) for rows in X]
    tagger = SequenceTagger(alpha=1e-3, fit_intercept=True).fit([form(rows) for rows in X], y)
    assert tagger.predict([form(rows) for rows in X]) == [labels.tolist() for labels in y]
    assert tagger.intercept_.any()
    with pytest.raises(ValueError, match=r"sequence 1 has shape \(2, 3\)"):
        tagger.predict([form(X[0]), form(np.ones((2, 3)))])


def test_nested_features_and_weights_of_sequences():
    nested = [[{"w": {"text": word, "long": len(word) > 3}} for word in sentence] for sentence in X]
    flat = [[{"w:text": word, "w:long": len(word) > 3} for word in sentence] for sentence in X]
    options = {"alpha": 1e-2, "tol": 1e-10}
    ours = SequenceTagger(**options).fit(nested, Y)
    np.testing.assert_allclose(ours.coef_, SequenceTagger(**options).fit(flat, Y).coef_, atol=1e-6)
    assert "w:text=cat" not in ours.model_.feature_names
    assert "w:text:cat" in ours.model_.feature_names
    weighted = SequenceTagger(**options).fit(flat, Y, sample_weight=[2, 1, 0, 1, 1, 1])
    chosen = [0, 0, 1, 3, 4, 5]
    repeated = SequenceTagger(**options).fit([flat[k] for k in chosen], [Y[k] for k in chosen])
    assert weighted.solution_.objective == pytest.approx(repeated.solution_.objective, rel=1e-8)


def test_names_of_features_alone():
    names = [[[f"w:{word}", f"s:{word[-2:]}"] for word in sentence] for sentence in X]
    dicts = [[{"w": word, "s": word[-2:]} for word in sentence] for sentence in X]
    ours = SequenceTagger(alpha=1e-2, tol=1e-10).fit(names, Y)
    np.testing.assert_allclose(ours.coef_, SequenceTagger(alpha=1e-2, tol=1e-10).fit(dicts, Y).coef_, atol=1e-6)


@pytest.mark.parametrize("sequences", [X, DICTS, [np.eye(10)[: len(s)] for s in X]])
def test_nothing_to_tag(sequences):
    tagger = SequenceTagger(alpha=1e-2).fit(sequences, Y)
    assert tagger.predict([]) == []
    assert tagger.predict_marginals([]) == []
    empty = np.zeros((0, 10)) if isinstance(sequences[0], np.ndarray) else []
    assert tagger.predict([empty, empty]) == [[], []]
    assert [p.shape for p in tagger.predict_proba([empty])] == [(0, 5)]


def test_grid_search_clone_and_pickle():
    search = GridSearchCV(SequenceTagger(), {"alpha": [1e-3, 10.0]}, cv=2, error_score="raise").fit(X, Y)
    assert search.best_params_ == {"alpha": 1e-3}
    tagger = search.best_estimator_
    assert clone(tagger).get_params() == tagger.get_params()
    assert pickle.loads(pickle.dumps(tagger)).predict(X) == tagger.predict(X)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"X": "the cat"}, "X is 'the cat', expected a list of sequences"),
        ({"X": WORDS}, "sequence 0 is 'the cat sat on a mat', expected a list of tokens"),
        ({"Y": Y[:2]}, "y has 2 sequences, X has 6"),
        ({"Y": [Y[0], Y[0], *Y[2:]]}, "sequence 1 has 6 labels, expected one for each of its 3 tokens"),
        ({"X": [], "Y": []}, "no tokens"),
        ({"X": [[1, 2]], "Y": [["a", "b"]]}, "the first token is 1, expected text"),
        ({"X": DICTS, "templates": "chunking"}, "templates are for tokens that are text"),
        ({"templates": "chunking"}, "column 1, the file has 1"),
        ({"X": [[("a", "b"), ("c",)]], "Y": [["1", "2"]], "templates": "w=%x[0,1]"}, "expected 2 texts a token"),
        ({"loss": "hinge"}, "another task, expected one of chain_crf"),
    ],
)
def test_wrong_sequences_are_refused_in_one_sentence(change, words):
    given = {"X": X, "Y": Y} | change
    sequences, labels = given.pop("X"), given.pop("Y")
    with pytest.raises(ValueError, match=words) as caught:
        SequenceTagger(**given).fit(sequences, labels)
    assert "\n" not in str(caught.value)
