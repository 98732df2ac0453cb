"""Forms of problems together: what rows say, what columns are, and what comes out, pair by pair.

The truth is J written in NumPy on features made by pandas and scikit-learn, minimised by scipy.
"""

import json
from itertools import combinations

import numpy as np
import pytest
import yaml
from scipy.optimize import minimize
from scipy.special import expit, logsumexp
from sklearn.preprocessing import PolynomialFeatures

import bmrm
from bmrm.app.pipeline.calibrate import folds_of
from bmrm.app.shares import rows_of_labels
from bmrm.cli import main
from bmrm.mpi.group import Alone
from tests.mpi.launch import work

pd = pytest.importorskip("pandas")

LAM, ROWS = 1e-2, 90
random = np.random.default_rng(3)
FRAME = pd.DataFrame(
    {
        "age": random.normal(size=ROWS).round(3),
        "size": 3.0 * random.normal(size=ROWS).round(3),
        "town": random.choice(["Oslo", "Bonn", "Rome"], ROWS),
        "log_exposure": random.normal(scale=0.5, size=ROWS).round(3),
    }
)
HOLES = FRAME.assign(size=FRAME["size"].where(random.random(ROWS) < 0.8))
SCORES = np.stack(
    (FRAME.age + (FRAME.town == "Oslo"), FRAME["size"] / 3.0, FRAME.age * FRAME["size"] / 3.0), axis=1
) + random.logistic(scale=0.5, size=(ROWS, 3))
WEIGHTS = random.uniform(0.5, 2.0, ROWS)
CLASSES = np.array(["a", "b", "c"])[SCORES.argmax(axis=1)]
SHARES = (1.0 / (1.0 + np.exp(-SCORES[:, 0]))).round(3)

KINDS = {
    "two classes": ({"loss": "logistic"}, CLASSES == "a"),
    "one vs rest": ({"loss": "logistic", "classes": "one_vs_rest"}, CLASSES),
    "softmax": ({"loss": "softmax"}, CLASSES),
    "labels each": ({"loss": "logistic", "labels": "each"}, (SCORES > [0.5, 0.0, 0.2]).astype(int)),
    "shares": ({"loss": "logistic"}, SHARES),
    "trials": ({"loss": "logistic"}, np.stack((np.round(4 * SHARES), np.full(ROWS, 4.0)), axis=1)),
    "counts": ({"loss": "poisson"}, random.poisson(np.exp(0.3 * SCORES[:, 0])).astype(float)),
    "outputs": ({"loss": "poisson"}, random.poisson(np.exp(0.3 * SCORES[:, :2])).astype(float)),
}
FORMS = {
    "categories": {},
    "missing": {"missing": "indicator"},
    "offset": {"offset": "log_exposure"},
    "features": {"features": {"name": "polynomial", "degree": 2}},
    "scale": {"scale": "standardize"},
    "weights": {"sample_weight": WEIGHTS},
    "class weights": {"class_weight": "balanced"},
    "calibrate": {"calibrate": "sigmoid"},
}
REFUSED = {
    ("softmax", "offset"): "what is added to all scores of a row alike changes nothing",
    ("labels each", "class weights"): "class_weight needs",
    ("counts", "class weights"): "class_weight needs",
    ("outputs", "class weights"): "class_weight needs",
    ("labels each", "calibrate"): "calibrate needs",
    ("counts", "calibrate"): "calibrate needs",
    ("outputs", "calibrate"): "calibrate needs",
}


def rows_of(forms):
    """The frame that is fitted, and its features, made by hand; the offset, (rows,)."""
    frame = HOLES if "missing" in forms else FRAME
    columns = ["age", "size", *(["town"] if "categories" in forms else [])]
    plain = [frame["age"].to_numpy(), frame["size"].fillna(frame["size"].mean()).to_numpy()]
    if "missing" in forms:
        plain.append(frame["size"].isna().to_numpy(float))
    if "categories" in forms:
        plain += [(frame.town == town).to_numpy(float) for town in ("Bonn", "Oslo", "Rome")]
    Z, offset = np.stack(plain, axis=1), np.zeros(ROWS)
    if "offset" in forms:
        columns.append("log_exposure")
        offset = frame["log_exposure"].to_numpy()
    if "scale" in forms:
        weights = WEIGHTS if "weights" in forms else None
        Z = Z - np.average(Z, axis=0, weights=weights)
        Z = Z / np.sqrt(np.average(Z**2, axis=0, weights=weights))
    if "features" in forms:
        Z = PolynomialFeatures(2, include_bias=False).fit_transform(Z)
    return frame[columns], Z, offset


def masses_of(kind, y, forms):
    """What the loss at score f counts of each row and column: of the label, and of its absence, (rows, columns)."""
    weights = WEIGHTS if "weights" in forms else np.ones(ROWS)
    if kind in ("one vs rest", "softmax"):
        yes = (y[:, None] == np.unique(y)).astype(float)
        if "class weights" in forms:
            masses = weights @ yes
            weights = weights * (yes @ (masses.sum() / len(masses) / masses))
    elif kind == "trials":
        yes, weights = (y[:, 0] / y[:, 1])[:, None], weights * y[:, 1]
    else:
        yes = np.asarray(y, float).reshape(ROWS, -1)
    yes, no = weights[:, None] * yes, weights[:, None] * (1.0 - yes)
    if "class weights" in forms and yes.shape[1] == 1:
        half = (yes.sum() + no.sum()) / 2.0
        yes, no = yes * half / yes.sum(), no * half / no.sum()
    return yes, no, weights


def objective_of(kind, y, forms, Z, offset):
    """J of weights with a free intercept below, (features + 1, columns), and its slope; how many columns."""
    yes, no, weights = masses_of(kind, y, forms)
    A, mass = np.c_[Z, np.ones(ROWS)], weights.sum()
    if yes.shape[1] == 1 and "class weights" in forms:
        mass = (yes + no).sum()

    def J(flat):
        W = flat.reshape(A.shape[1], -1)
        F = A @ W + offset[:, None]
        if kind == "softmax":
            total = logsumexp(F, axis=1)
            value = weights @ total - (yes * F).sum()
            slope = weights[:, None] * np.exp(F - total[:, None]) - yes
        elif kind in ("counts", "outputs"):
            value = (weights[:, None] * np.exp(F) - yes * F).sum()
            slope = weights[:, None] * np.exp(F) - yes
        else:
            value = (yes * np.logaddexp(0.0, -F) + no * np.logaddexp(0.0, F)).sum()
            slope = no * expit(F) - yes * expit(-F)
        G = A.T @ slope / mass
        G[:-1] += LAM * W[:-1]
        return value / mass + LAM / 2.0 * (W[:-1] ** 2).sum(), G.ravel()

    return J, (A.shape[1], yes.shape[1])


CASES = [
    (kind, forms)
    for kind in KINDS
    for forms in (*combinations(FORMS, 2), tuple(form for form in FORMS if (kind, form) not in REFUSED))
]


@pytest.mark.parametrize(("kind", "forms"), CASES, ids=lambda part: part if isinstance(part, str) else "+".join(part))
def test_a_pair_is_the_problem_written_plainly(kind, forms, tmp_path):
    options, y = KINDS[kind]
    frame, Z, offset = rows_of(forms)
    given = {key: value for form in forms for key, value in FORMS[form].items()}
    given = {**options, **given, "lam": LAM, "tolerance": 1e-9}
    refused = [REFUSED[kind, form] for form in forms if (kind, form) in REFUSED]
    if refused:
        with pytest.raises(bmrm.problem.BmrmError, match="|".join(refused)):
            bmrm.fit(frame, y, **given)
        return
    model = bmrm.fit(frame, y, **given)
    J, shape = objective_of(kind, y, forms, Z, offset)
    truth = minimize(
        J,
        np.zeros(shape).ravel(),
        jac=True,
        method="L-BFGS-B",
        options={"ftol": 1e-13, "gtol": 1e-7, "maxiter": 10_000},
    )
    solution = model.solution
    assert solution.converged
    assert solution.objective == pytest.approx(truth.fun, rel=1e-6)
    assert solution.lower_bound <= truth.fun * (1.0 + 1e-12)
    model.save(tmp_path / "model.npz")
    again = bmrm.load_model(tmp_path / "model.npz")
    np.testing.assert_array_equal(again.decision_function(frame), model.decision_function(frame))
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
    assert again.evaluate(frame, y) == model.evaluate(frame, y)
    if kind != "softmax":
        W = truth.x.reshape(shape)
        F = (np.c_[Z, np.ones(ROWS)] @ W + offset[:, None]).reshape(model.decision_function(frame).shape)
        np.testing.assert_allclose(again.decision_function(frame), F, atol=3e-3)
    if "calibrate" in forms or kind not in ("labels each", "counts", "outputs"):
        P = again.predict_proba(frame)
        np.testing.assert_array_equal(P, model.predict_proba(frame))
        np.testing.assert_allclose(P.sum(axis=1), 1.0)
    again.export(tmp_path / "model.json", "json")


def test_rows_that_stand_for_the_shares_of_one_are_in_one_fold():
    X = FRAME[["age", "size"]].to_numpy()
    data = rows_of_labels(bmrm.Dataset.from_arrays(X, SHARES), bmrm.losses.LOSSES.make("logistic"))
    fold = folds_of(data, 4, Alone(), shares=True)
    for row in X:
        assert len(set(fold[(np.asarray(data.X) == row).all(axis=1)])) == 1
    assert np.bincount(fold).min() >= 2 * ROWS // 4 - 2


# -- files, configs and ranks ------------------------------------------------------------------------


DOORS = {
    "two classes": tuple(FORMS),
    "one vs rest": tuple(FORMS),
    "shares": tuple(FORMS),
    "counts": ("categories", "missing", "offset", "features", "scale", "weights"),
}


@pytest.fixture
def job(tmp_path, monkeypatch):
    """A config of all that a kind of targets goes together with, and the same from Python."""
    monkeypatch.chdir(tmp_path)

    def write(kind):
        options, y = KINDS[kind]
        frame, _, _ = rows_of(DOORS[kind])
        frame.assign(target=y * 1 if y.dtype == bool else y).to_csv("rows.csv", index=False)
        np.savetxt("weights.txt", WEIGHTS)
        given = {key: value for form in DOORS[kind] for key, value in FORMS[form].items()}
        config = {
            "data": {"train": "rows.csv", "format": {"name": "csv", "label": "target"}, "weights": "weights.txt"},
            "loss": options["loss"],
            "regularizer": {"name": "l2", "lambda": LAM},
            "solver": {"name": "auto", "tolerance": 1e-9},
            "output": {"directory": "one"},
        }
        sections = {**options, **given}
        for name in ("classes", "missing", "offset", "features", "scale", "class_weight"):
            if name in sections:
                config["data"][name] = sections[name]
        if "calibrate" in sections:
            config["calibrate"] = sections["calibrate"]
        with open("config.yaml", "w") as file:
            yaml.safe_dump(config, file)
        return frame, bmrm.fit(frame, y, **options, **given, lam=LAM, tolerance=1e-9)

    return write


def summary(folder):
    with open(f"{folder}/summary.json") as file:
        return json.load(file)


@pytest.mark.mpi
@pytest.mark.parametrize("kind", DOORS)
def test_all_of_a_kind_together_from_a_config_and_over_ranks(kind, job, tmp_path):
    frame, model = job(kind)
    assert main(["train", "config.yaml", "--quiet"]) == 0
    assert summary("one")["objective"] == pytest.approx(model.solution.objective, rel=1e-8)
    done = work(2, "bmrm.cli", "train", "config.yaml", "--quiet", "--output", "two", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert summary("two")["objective"] == pytest.approx(model.solution.objective, rel=1e-7)
    assert main(["predict", "one", "rows.csv", "--quiet", "--out", "scores"]) == 0
    scores = np.loadtxt("scores", skiprows=int(kind == "one vs rest"))  # below the names of the classes
    np.testing.assert_allclose(scores, model.decision_function(frame), atol=1e-2)
    for name in ("one", "two"):
        again = bmrm.load_model(f"{name}/model.npz")
        np.testing.assert_allclose(again.decision_function(frame), model.decision_function(frame), atol=1e-2)
        if "calibrate" in DOORS[kind]:
            np.testing.assert_allclose(again.predict_proba(frame), model.predict_proba(frame), atol=1e-3)
    assert main(["show", "one"]) == 0
    assert main(["evaluate", "two", "rows.csv"]) == 0
    assert main(["train", "config.yaml", "--quiet"]) == 0  # is there already
