"""Columns that are no numbers, or lack values: categories, text, missing ones, at every door."""

import json
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import yaml
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import bmrm
from bmrm.cli import main
from bmrm.data.encoding import Encoding
from bmrm.data.raw_columns import Coding
from bmrm.data.reading import read
from bmrm.problem import IncompatibleError, InputError
from tests.mpi.launch import work

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

TIGHT = {"loss": "logistic", "lam": 1e-2, "tolerance": 1e-10}
WORDS = ("--loss", "logistic", "--lambda", "1e-2", "--tolerance", "1e-10", "--quiet")
TEXT = ("Good car, good price", "rusty", "a bargain price", "")


def table(rows=300, seed=0):
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": random.integers(18, 80, rows).astype(float),
            "town": random.choice(["Oslo", "Bergen", "Bodø", "Hamar"], rows, p=[0.5, 0.3, 0.19, 0.01]),
            "fuel": pd.Series(random.choice(["gas", "diesel"], rows), dtype="category"),
            "zone": random.integers(8, 12, rows),
            "owns": random.random(rows) < 0.5,
            "note": random.choice(TEXT[:3], rows),
        }
    )
    score = (frame["town"] == "Oslo") + frame["age"] / 50 + (frame["zone"] == 9) + random.normal(size=rows)
    return frame, np.where(score > 2.2, "yes", "no")


def holes(frame, seed=1):
    """The same with missing values."""
    random, frame = np.random.default_rng(seed), frame.copy()
    for name in ("age", "town"):
        frame.loc[random.choice(len(frame), 20, replace=False), name] = None
    return frame


@pytest.fixture(scope="module")
def rows():
    frame, y = table()
    return frame.drop(columns="note"), y


def dense(X):
    return X.toarray() if sp.issparse(X) else np.asarray(X, float)


def objective(X, y):
    return bmrm.fit(X, y, **TIGHT).solution.objective


ENCODERS = {
    "plain": ({}, {}),
    "drop_first": ({"drop_first": True}, {"drop": "first"}),
    "rare": ({"rare": 10}, {"min_frequency": 10}),
    "both": ({"rare": 10, "drop_first": True}, {"drop": "first", "min_frequency": 10}),
}


@pytest.mark.parametrize("case", ENCODERS)
def test_the_features_are_those_of_a_column_transformer(rows, case):
    ours, theirs = ENCODERS[case]
    X, y = rows
    names = ["town", "fuel", "zone"]
    peer = ColumnTransformer(
        [("age", "passthrough", ["age"]), ("levels", OneHotEncoder(**theirs), names), ("o", "passthrough", ["owns"])]
    )
    table = dense(peer.fit_transform(X))
    model = bmrm.fit(X, y, categorical=["zone"], **ours, **TIGHT)
    assert model.solution.objective == pytest.approx(objective(table, y), rel=1e-9)
    encoded = bmrm.Dataset.from_arrays(X, coding=model.encoding)
    np.testing.assert_array_equal(encoded.X, table)
    for own, other in zip(model.feature_names, peer.get_feature_names_out(), strict=True):
        other = other.split("__")[1].replace("infrequent_sklearn", "(rare)")
        assert own in (other, other.replace("_", "=", 1))


def test_the_model_names_its_features_and_finds_them_in_other_frames(rows, tmp_path):
    X, y = rows
    model = bmrm.fit(X, y, categorical=["zone"], **TIGHT)
    assert model.feature_names == (
        *("age", "town=Bergen", "town=Bodø", "town=Hamar", "town=Oslo", "fuel=diesel", "fuel=gas"),
        *("zone=8", "zone=9", "zone=10", "zone=11", "owns"),  # numbers in their own order
    )
    assert model.top_weights(1)[0].feature in model.feature_names
    model.save(tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz", allow_pickle=False) as file:
        assert all(file[name].dtype != object for name in file.files)
    scores = model.decision_function(X)
    for other in (bmrm.load_model(tmp_path / "m.npz"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.decision_function(X), scores)
        np.testing.assert_array_equal(other.decision_function(X.iloc[:, ::-1]), scores)
        np.testing.assert_array_equal(other.decision_function(X.iloc[5:9]), scores[5:9])
        polars = pl.DataFrame({name: X[name].to_list() for name in X})
        np.testing.assert_array_equal(other.decision_function(polars), scores)
        for kind in (pl.Categorical, pl.Enum(["diesel", "gas"])):
            typed = polars.with_columns(pl.col("fuel").cast(kind))
            np.testing.assert_array_equal(other.decision_function(typed), scores)
        np.testing.assert_array_equal(other.decision_function(X.astype({"town": "category"})), scores)
        np.testing.assert_array_equal(other.decision_function(X.to_numpy()), scores)  # columns in the order of training
        assert other.evaluate(X, y)["accuracy"] == np.mean(other.predict(X) == y)
        assert len(other.decision_function(X.iloc[:0])) == 0
    with pytest.raises(InputError, match="X: no column 'town'; expected the 5 columns of the training"):
        model.predict(X.drop(columns="town"))
    with pytest.raises(InputError, match="X: has unknown column 'shoe'"):
        model.predict(X.assign(shoe=1))
    with pytest.raises(InputError, match=r"X: column 'age' holds text \(row 0: 'old'\)"):
        model.predict(X.assign(age="old"))


def test_an_unknown_level_is_all_zero_and_said_once(rows):
    X, y = rows
    model = bmrm.fit(X, y, **TIGHT)
    other = X.copy()
    other.loc[[4, 7, 9], "town"] = ["Paris", "Rome", "Paris"]
    other["fuel"] = other["fuel"].astype(str).where(other.index != 3, "coal")
    with pytest.warns(UserWarning, match="levels that the training rows had not") as caught:
        found = model.decision_function(other)
    assert len(caught) == 1
    text = "column 'town': 3 rows, the first with 'Paris'; column 'fuel': 1 rows, the first with 'coal'"
    assert str(caught[0].message).endswith(text)
    weights = dict(zip(model.feature_names, model.weights))
    known = model.decision_function(X)
    expected = known[4] - weights[f"town={X['town'][4]}"]
    assert found[4] == pytest.approx(expected, rel=1e-12)
    assert found[3] == pytest.approx(known[3] - weights[f"fuel={X['fuel'][3]}"], rel=1e-12)


def test_many_levels_make_sparse_rows(rows):
    X, y = rows
    street = np.random.default_rng(2).integers(0, 90, len(y))
    X = X[["age"]].assign(street=[f"street {k}" for k in street], town=X["town"])
    model = bmrm.fit(X, y, **TIGHT)
    encoded = bmrm.Dataset.from_arrays(X, coding=model.encoding)
    assert not isinstance(encoded.X, np.ndarray)
    peer = ColumnTransformer([("l", OneHotEncoder(), ["street", "town"])], remainder="passthrough")
    assert model.solution.objective == pytest.approx(objective(dense(peer.fit_transform(X)), y), rel=1e-9)
    only = bmrm.Dataset.from_arrays(X[["street"]], coding=Coding())
    assert only.X.values is None  # 1 and 0 need none


MISSING = {
    "mean": [SimpleImputer(), {"town": "missing"}],
    "indicator": [SimpleImputer(add_indicator=True), {"town": "missing"}],
    "zero": [SimpleImputer(strategy="constant", fill_value=0.0), {}],
}


@pytest.mark.parametrize("missing", MISSING)
def test_missing_values(rows, missing, tmp_path):
    imputer, level = MISSING[missing]
    X, y = rows[0][["age", "town"]], rows[1]
    gaps = holes(X)
    with pytest.raises(InputError, match=r"X: row \d+, column 'age' is nan, expected a finite number; missing: mean"):
        bmrm.fit(gaps, y)
    with pytest.raises(InputError, match=r"X: row \d+, column 'town' is missing, expected a level"):
        bmrm.fit(gaps[["town"]], y)
    model = bmrm.fit(gaps, y, missing=missing, **TIGHT)
    towns = gaps["town"].fillna("missing").to_frame()
    levels = [np.array(["Bergen", "Bodø", "Hamar", "Oslo", *level.values()], object)]
    encoder = OneHotEncoder(categories=levels, handle_unknown="ignore")
    table = np.hstack([imputer.fit_transform(gaps[["age"]]), dense(encoder.fit_transform(towns))])
    assert model.solution.objective == pytest.approx(objective(table, y), rel=1e-9)
    names = ["age", *(["age (missing)"] if missing == "indicator" else [])]
    assert model.feature_names == (*names, *(f"town={one}" for one in levels[0]))
    model.save(tmp_path / "m.npz")
    other = bmrm.load_model(tmp_path / "m.npz")
    np.testing.assert_array_equal(other.decision_function(gaps), model.decision_function(gaps))
    alone = gaps[gaps["age"].isna()].iloc[:1]  # the mean is that of training
    np.testing.assert_array_equal(other.decision_function(alone), model.decision_function(gaps)[alone.index])


def test_missing_values_that_training_had_not(rows):
    X, y = rows[0][["age", "town"]], rows[1]
    gaps = holes(X).iloc[:40]
    model = bmrm.fit(X, y, missing="mean", **TIGHT)
    with pytest.warns(UserWarning, match=r"column 'town': \d rows, the first with a missing value"):
        model.predict(gaps)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bmrm.fit(X, y, missing="zero", **TIGHT).predict(gaps)
    with pytest.raises(InputError, match="column 'age' is nan"):
        bmrm.fit(X, y, **TIGHT).predict(gaps)


@pytest.mark.parametrize(("form", "peer"), [("hashed", HashingVectorizer()), ("counted", CountVectorizer())])
def test_text_is_what_the_vectorizers_make_of_it(form, peer, tmp_path):
    frame, y = table()
    X = frame[["note", "age"]]
    model = bmrm.fit(X, y, text={"note": form}, **TIGHT)
    words = sp.hstack([peer.fit_transform(X["note"]), X[["age"]].to_numpy()], format="csr").astype(float)
    assert model.dim == words.shape[1]
    assert model.solution.objective == pytest.approx(
        bmrm.fit(bmrm.Dataset.from_arrays(words, y).with_features(words.shape[1]), **TIGHT).solution.objective, rel=1e-9
    )
    if form == "counted":
        assert model.feature_names == (*(f"note={word}" for word in peer.get_feature_names_out()), "age")
    model.save(tmp_path / "m.npz")
    other = X.assign(note="nothing known, good")
    np.testing.assert_array_equal(
        bmrm.load_model(tmp_path / "m.npz").decision_function(other), model.decision_function(other)
    )


BAD = {
    "dates": ({"d": pd.Timestamp("2020-01-01")}, {}, r"X: column 'd' holds datetime64.*: dates and times are no feat"),
    "text of dates": ({"d": "2020-01-01"}, {}, r"X: column 'd' holds text \(row 0: '2020-01-01'\), dates and times"),
    "text of numbers": ({"d": "7"}, {}, r"X: column 'd' holds text \(row 0: '7'\), expected numbers; convert them"),
    "amounts": ({"d": "$1,000"}, {}, r"X: column 'd' holds text \(row 0: '\$1,000'\), expected numbers; convert"),
    "a mixture": ({"d": [1, "a"] * 150}, {}, r"X: column 'd' holds text \(row 1: 'a'\) and others \(row 0: 1\)"),
    "no such column": ({}, {"categorical": ["twon"]}, r"X: 0 columns are named 'twon', .* \(did you mean 'town'\?\)"),
    "no such place": ({}, {"categorical": [9]}, "X: column 9, expected 0 to 4"),
    "twice": ({}, {"categorical": ["town"], "text": {"town": "hashed"}}, "'town' is in categorical and in text"),
    "no form": ({}, {"text": {"town": "tfidf"}}, "text is .*, expected a dict of columns, each 'hashed' or 'counted'"),
    "no rule": ({}, {"missing": "median"}, "missing is 'median', expected one of refuse, mean, indicator, zero"),
    "rare 0": ({}, {"rare": 0}, "rare is 0, expected a whole number >= 1"),
    "all missing": ({"d": np.nan}, {"missing": "mean"}, "X: column 'd': all values are missing"),
    "infinite": ({"d": np.inf}, {"missing": "mean"}, "X: row 0, column 'd' is inf, expected a finite number"),
    "two of a name": ({"town=Oslo": 1.0}, {}, "two features would be named 'town=Oslo'"),
}


@pytest.mark.parametrize("case", BAD)
def test_one_message_for_each_bad_input(rows, case):
    columns, given, said = BAD[case]
    for fit in (lambda X, y: bmrm.fit(X, y, **given), lambda X, y: bmrm.Classifier(**given).fit(X, y)):
        with pytest.raises(InputError, match=said):
            fit(rows[0].assign(**columns), rows[1])


def test_what_has_no_columns(rows):
    X = sp.csr_matrix(np.eye(4))
    with pytest.raises(InputError, match="missing is for columns of a data frame or an array, X is sparse"):
        bmrm.fit(X, [0, 1, 0, 1], missing="mean")
    with pytest.raises(InputError, match="categorical beside a Dataset"):
        bmrm.fit(bmrm.Dataset.from_arrays(X, [0, 1, 0, 1]), categorical=[0])
    with pytest.raises(InputError, match="X holds text, expected numbers"):
        bmrm.fit(rows[0].to_numpy().astype(str), rows[1])


def test_arrays_by_place(rows):
    random = np.random.default_rng(0)
    X, y = np.column_stack([random.normal(size=60), random.integers(0, 3, 60)]), random.integers(0, 2, 60)
    model = bmrm.fit(X, y, categorical=[1], **TIGHT)
    assert model.feature_names == ("x0", "x1=0", "x1=1", "x1=2")
    peer = np.column_stack([X[:, 0], X[:, 1:] == [0, 1, 2]])
    assert model.solution.objective == pytest.approx(objective(peer, y), rel=1e-9)
    np.testing.assert_allclose(model.decision_function(X), model.decision_function(peer), rtol=1e-12)
    gaps = np.where(random.random(X.shape) < 0.1, np.nan, X)
    filled = SimpleImputer(add_indicator=True).fit_transform(gaps)
    ours = bmrm.fit(gaps, y, missing="indicator", **TIGHT)
    assert ours.solution.objective == pytest.approx(objective(filled, y), rel=1e-9)


@pytest.mark.parametrize("name", ["Classifier", "Regressor", "NoveltyDetector", "OrdinalClassifier"])
def test_estimators_take_frames(rows, name):
    X, y = rows
    targets = {"Regressor": X["age"] + (X["town"] == "Oslo"), "NoveltyDetector": None}
    targets["OrdinalClassifier"] = np.digitize(X["age"], [40, 60])
    target = targets.get(name, y)
    frame = X[["age", "town", "fuel"]]
    estimator = clone(getattr(bmrm, name)(drop_first=True, missing="mean"))
    estimator.fit(frame, target) if target is not None else estimator.fit(frame)
    assert estimator.encoding_.names == ("age", "town=Bodø", "town=Hamar", "town=Oslo", "fuel=gas")
    assert estimator.n_features_in_ == 3
    assert list(estimator.feature_names_in_) == ["age", "town", "fuel"]
    assert estimator.coef_.size == 5
    other = pickle.loads(pickle.dumps(estimator))
    np.testing.assert_array_equal(other.predict(frame), estimator.predict(frame))
    with pytest.raises(ValueError, match="feature names"):
        estimator.predict(frame.drop(columns="town"))
    with pytest.warns(UserWarning, match="column 'town': 300 rows, the first with 'Paris'"):
        estimator.predict(frame.assign(town="Paris"))


def test_an_estimator_is_the_pipeline_of_scikit_learn(rows):
    X, y = rows
    encoder = ColumnTransformer([("l", OneHotEncoder(), ["town", "fuel"])], remainder="passthrough")
    peer = make_pipeline(encoder, bmrm.Classifier("logistic", alpha=1e-2, tol=1e-10)).fit(X, y)
    own = bmrm.Classifier("logistic", alpha=1e-2, tol=1e-10).fit(X, y)
    assert own.solution_.objective == pytest.approx(peer[-1].solution_.objective, rel=1e-9)
    assert np.array_equal(own.predict(X), peer.predict(X))
    again = own.fit(rows[0][["age", "owns"]], y)  # numbers alone
    assert again.encoding_ is None


# -- files -----------------------------------------------------------------------------------------


@pytest.fixture
def job(tmp_path, monkeypatch):
    """Files of a table, with its holes and without, in every format that has columns."""
    monkeypatch.chdir(tmp_path)
    frame, y = table()
    frame = frame.assign(owns=frame["owns"].astype(int))
    for name, one in (("full", frame), ("holes", holes(frame))):
        one.assign(y=y).to_csv(f"{name}.csv", index=False)
        one.assign(y=y).to_parquet(f"{name}.parquet")
        pl.read_csv(f"{name}.csv").write_ipc(f"{name}.arrow")
    return frame, y


def saved(folder):
    with open(f"{folder}/summary.json") as file:
        return json.load(file)


GIVEN = (
    {"categorical": ["zone"], "rare": 10, "text": {"note": "counted"}},
    {"categorical": ["zone"], "drop_first": True, "missing": "indicator"},
    {"missing": "mean", "text": {"note": "hashed"}},
    {"missing": "zero"},
)


@pytest.mark.parametrize("given", GIVEN, ids=str)
def test_files_frames_and_command_line_give_one_model(job, given):
    frame, y = job
    kind = "holes" if "missing" in given else "full"
    model = bmrm.fit(holes(frame) if kind == "holes" else frame, y, **given, **TIGHT)
    options = {
        "--categorical": given.get("categorical", [None])[0],
        "--text": f"{{note: {given['text']['note']}}}" if "text" in given else None,
        "--missing": given.get("missing"),
        "--rare": given.get("rare"),
    }
    words = [str(word) for pair in options.items() if pair[1] is not None for word in pair]
    words += ["--drop-first"] if given.get("drop_first") else []
    for suffix in ("csv", "parquet", "arrow"):
        assert main(["train", f"{kind}.{suffix}", *WORDS, *words, "--output", suffix]) == 0
        found = bmrm.load_model(f"{suffix}/model.npz")
        assert found.feature_names == model.feature_names
        assert saved(suffix)["objective"] == pytest.approx(model.solution.objective, rel=1e-9)
        assert saved(suffix)["notes"][0].startswith("data.train: one-hot encoded: ")
    with open("csv/config.yaml") as file:
        kept = yaml.safe_load(file)
    assert kept["data"]["missing"] == given.get("missing", "refuse")
    kept["output"]["directory"] = "again"
    with open("again.yaml", "w") as file:
        yaml.safe_dump(kept, file)
    assert main(["train", "again.yaml", "--quiet"]) == 0
    assert saved("again")["objective"] == saved("csv")["objective"]


def test_other_files_have_columns_in_any_order(job, capsys):
    frame, y = job
    assert main(["train", "full.csv", *WORDS, "--categorical", "zone", "--output", "o"]) == 0
    model = bmrm.load_model("o/model.npz")
    scores = model.decision_function(frame)
    frame.iloc[:, ::-1].to_csv("turned.csv", index=False)
    frame.assign(y=y).iloc[:, ::-1].to_parquet("turned.parquet")
    for name in ("turned.csv", "turned.parquet"):
        assert main(["predict", "o", name, "--out", "s.txt", "--quiet"]) == 0
        np.testing.assert_array_equal(np.loadtxt("s.txt"), scores)
    frame.drop(columns="town").to_csv("short.csv", index=False)
    frame.assign(shoe=1, when="2020-01-01").to_csv("long.csv", index=False)
    for name, said in (("short", "no column 'town'"), ("long", "has unknown columns 'shoe', 'when'")):
        capsys.readouterr()
        assert main(["predict", "o", f"{name}.csv", "--out", "none.txt"]) == 2
        told = capsys.readouterr().err
        assert said in told
        assert told.count("\n") == 1
    assert main(["predict", "o", "long.csv", "--ignore", "shoe", "--ignore", "when", "--out", "s.txt"]) == 0
    np.testing.assert_array_equal(np.loadtxt("s.txt"), scores)


def test_unknown_levels_of_files_are_said_once(job, capsys, monkeypatch):
    frame, y = job
    assert main(["train", "full.csv", *WORDS, "--output", "o"]) == 0
    frame.assign(town="Paris", y=y).to_csv("other.csv", index=False)
    monkeypatch.setattr("bmrm.app.predict.PIECE", 1000)
    words = (
        "levels that the training rows had not, all features of which are 0: column 'town': 300 rows, the first with"
    )
    for command in (["predict", "o", "other.csv", "--out", "s.txt"], ["evaluate", "o", "other.csv"]):
        capsys.readouterr()
        assert main(command) == 0
        assert capsys.readouterr().err.count(words) == 1
    assert main(["train", "full.csv", *WORDS, "--test", "other.csv", "--output", "p"]) == 0
    assert saved("p")["notes"][1].startswith(f"data.test: {words} 'Paris'")
    with pytest.warns(UserWarning, match=words):
        bmrm.load_model("o/model.npz").read("other.csv")


def test_show_lists_the_columns(job, capsys):
    words = ["--categorical", "zone", "--rare", "10", "--missing", "mean", "--text", "{note: counted}"]
    assert main(["train", "holes.csv", *WORDS, *words, "--output", "o"]) == 0
    assert main(["show", "o", "--json"]) == 0
    columns = {one["name"]: one for one in json.loads(capsys.readouterr().out)["columns"]}
    assert columns["town"] == {"name": "town", "kind": "category", "features": 5, "levels": 4, "rare": 1}
    assert columns["note"]["words"] == 5
    assert main(["show", "o"]) == 0
    said = capsys.readouterr().out
    assert "town (category, levels 4, rare 1)" in said
    assert "town=Oslo" in said


BAD_FILES = {
    "empty": ("a,b,y\n1,x,0\n2,,1\n", [], "t.csv, line 3, column 'b': the value is missing (''); missing: mean,"),
    "empty number": ("a,b,y\n1,x,0\n,z,1\n", [], "t.csv, line 3, column 'a': '', expected a finite number"),
    "text in numbers": ("a,b,y\n1,2,0\n2,x,1\n", [], "data.categorical makes categories of a column"),
    "numbers in text": ("a,b,y\n1,x,0\n2,3,1\n", [], "t.csv, line 2, column 'b': 'x', expected a finite number"),
    "dates": ("a,b,y\n1,2020-01-31,0\n2,2020-02-28,1\n", [], "line 2, column 'b': '2020-01-31'; dates and times are"),
    "amounts": ("a;b;y\n1;2,5;0\n2;3,5;1\n", [], "numbers have a point, not a comma"),
    "the label": (
        "a,b,y\n1,x,0\n2,z,1\n",
        ["--categorical", "y"],
        "column 'y' is to become features (category), but is",
    ),
    "no such column": ("a,b,y\n1,x,0\n2,z,1\n", ["--categorical", "bb"], "0 columns are named 'bb', expected one (did"),
    "infinite": ("a,b,y\n1,x,0\ninf,z,1\n", ["--missing", "mean"], "t.csv, line 3, column 'a': inf, expected a finite"),
    "all missing": ("a,b,y\n1,,0\n3,,1\n", ["--missing", "mean"], "column 'b': all values are missing"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_bad_file_is_told_by_line_and_column(case, tmp_path, monkeypatch, capsys):
    text, words, said = BAD_FILES[case]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text(text)
    assert main(["train", "t.csv", *WORDS, *words, "--output", "o"]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1
    assert not (tmp_path / "o").exists()


def test_formats_without_columns_refuse_options_of_columns(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.svm").write_text("1 1:2\n-1 1:3\n")
    for source, what in (("t.svm", "svmlight files"), ("sklearn:iris", "bundled or generated rows")):
        assert main(["train", source, "--missing", "mean", "--quiet", "--output", "o"]) == 2
        assert f"{source}: data.missing is for arrow, csv, not for {what}" in capsys.readouterr().err


def test_values_may_be_missing_anywhere_in_a_csv_file(tmp_path):
    text = "n,c,late,y\n,,,0\n1,a,,1\n,b,x,0\n3,NA,z,1\nnan,a,NA,0\n"
    (tmp_path / "t.csv").write_text(text)
    data = read(tmp_path / "t.csv", coding=Coding(missing="indicator"))
    assert data.feature_names == ("n", "n (missing)", "c=a", "c=b", "c=missing", "late=x", "late=z", "late=missing")
    expected = [[2, 1, 0, 0, 1, 0, 0, 1], [1, 0, 1, 0, 0, 0, 0, 1], [2, 1, 0, 1, 0, 1, 0, 0]]
    expected += [[3, 0, 0, 0, 1, 0, 1, 0], [2, 1, 1, 0, 0, 0, 0, 1]]
    np.testing.assert_array_equal(data.X, expected)


def test_an_export_says_the_encoding_or_is_refused(rows, tmp_path):
    model = bmrm.fit(rows[0], rows[1], missing="mean", **TIGHT)
    model.export(tmp_path / "m.json", "json")
    with open(tmp_path / "m.json") as file:
        columns = {one["name"]: one for one in json.load(file)["columns"]}
    assert columns["age"]["mean"] == rows[0]["age"].mean()
    assert columns["town"]["texts"] == ["Bergen", "Bodø", "Hamar", "Oslo"]
    for name in ("c", "vw", "liblinear"):
        with pytest.raises(IncompatibleError, match=r"columns that become features by an encoding"):
            model.export(tmp_path / "m", name)


def test_a_damaged_encoding_is_refused(rows):
    encoding = bmrm.fit(rows[0], rows[1], missing="mean", rare=10).encoding
    header, arrays = encoding.header(), encoding.arrays()
    assert Encoding.from_file(header, arrays).names == encoding.names
    wrong = [
        (None, arrays),
        (header, {}),
        ({**header, "missing": "often"}, arrays),
        ({**header, "columns": []}, arrays),
        ({**header, "columns": [{**one, "levels": 10**9} for one in header["columns"]]}, arrays),
        ({**header, "columns": [{**one, "kind": "strange"} for one in header["columns"]]}, arrays),
        (header, {**arrays, "encoding_places": arrays["encoding_places"] + 5}),
        (header, {**arrays, "encoding_places": arrays["encoding_places"][:-1]}),
        (header, {**arrays, "encoding_means": np.full(3, np.nan)}),
        (header, {**arrays, "encoding_bytes": arrays["encoding_bytes"][:-1]}),
    ]
    for one, kept in wrong:
        with pytest.raises(InputError, match="damaged"):
            Encoding.from_file(one, kept)


# -- ranks -----------------------------------------------------------------------------------------


@pytest.mark.mpi
def test_over_ranks_levels_means_and_words_are_those_of_all(job, tmp_path):
    frame = holes(job[0]).assign(y=job[1])
    order = np.argsort(frame["town"].fillna("").to_numpy(), kind="stable")  # a rank has towns that the other has not
    for rank, part in enumerate((order[:170], order[170:])):
        frame.iloc[part].to_csv(f"part-{rank}.csv", index=False)
    words = ["--categorical", "zone", "--rare", "10", "--missing", "indicator", "--text", "{note: counted}"]
    done = work(2, "bmrm.cli", "train", "part-{rank}.csv", *WORDS, *words, "--output", "o", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    given = {"categorical": ["zone"], "rare": 10, "missing": "indicator", "text": {"note": "counted"}}
    alone = bmrm.fit(frame.drop(columns="y"), frame["y"], **given, **TIGHT)
    model = bmrm.load_model("o/model.npz")
    assert model.feature_names == alone.feature_names
    assert saved("o")["objective"] == pytest.approx(alone.solution.objective, rel=1e-8)
    for column, other in zip(model.encoding.columns, alone.encoding.columns):
        assert getattr(column, "fill", 0.0) == pytest.approx(getattr(other, "fill", 0.0), rel=1e-14)
    single = work(2, "bmrm.cli", "train", "holes.parquet", *WORDS, *words, "--output", "p", cwd=tmp_path)
    assert single.returncode == 0, single.stderr
    assert saved("p")["objective"] == pytest.approx(alone.solution.objective, rel=1e-8)


@pytest.mark.mpi
def test_over_ranks_a_column_of_two_kinds_is_refused(tmp_path):
    (tmp_path / "part-0.csv").write_text("a,b,y\n1,2,0\n2,3,1\n")
    (tmp_path / "part-1.csv").write_text("a,b,y\n1,x,0\n2,z,1\n")
    done = work(2, "bmrm.cli", "train", "part-{rank}.csv", "--quiet", "--output", "o", cwd=tmp_path)
    assert done.returncode == 2
    assert "column 'b' holds numbers in some rows and text in others" in done.stderr
    named = work(2, "bmrm.cli", "train", "part-{rank}.csv", "--categorical", "b", *WORDS, "--output", "o", cwd=tmp_path)
    assert named.returncode == 0, named.stderr
    assert bmrm.load_model(tmp_path / "o/model.npz").feature_names == ("a", "b=2", "b=3", "b=x", "b=z")
