"""One setting under every name at every door; words of other programs are answered by what to write here."""

import inspect
import re

import numpy as np
import pytest
import yaml
from sklearn.model_selection import GridSearchCV

import bmrm
from bmrm import InputError
from bmrm.app.config.config import load_settings
from bmrm.app.config.sections import Settings
from bmrm.cli import main, parse, train
from bmrm.data.readers._core.formats import formats
from bmrm.losses import LOSSES
from bmrm.regularizers import REGULARIZERS
from bmrm.solvers import SOLVERS
from bmrm.vocabulary import ANSWERS, ELSEWHERE, KEPT_APART, SETTINGS, answer, canonical

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = (X[:, 0] + 0.3 * RNG.normal(size=40) > 0.0).astype(int)
ESTIMATORS = ["Classifier", "Regressor", "Ranker", "MultilabelClassifier", "OrdinalClassifier", "NoveltyDetector"]
ESTIMATORS += ["SequenceTagger"]
REGISTRIES = {"loss": LOSSES, "regularizer": REGULARIZERS, "solver": SOLVERS}
ARGUMENTS = list(inspect.signature(bmrm.fit).parameters)
VALUES = {"lam": 0.03, "tolerance": 1e-5, "max_iterations": 3, "seed": 5, "loss": "logistic", "regularizer": "l1"}
VALUES |= {"solver": "bundle", "absolute_tolerance": 0.25, "time_limit": 1e3, "threads": 1, "scale": "standardize"}
VALUES |= {
    "offset": np.linspace(-1.0, 1.0, 40),
    "sample_weight": 1.0 + np.arange(40),
    "groups": np.arange(40) // 4,
    "positive_label": 0,
}
VALUES |= {"validation": (X, Y), "follow": (), "start": np.ones(3), "bias": "none", "class_weight": {0: 2.0}}
VALUES |= {"calibrate": "sigmoid", "features": "polynomial"}
VALUES |= {"categorical": [0], "text": {}, "missing": "mean", "drop_first": True, "rare": 3}


def refused(call, *arguments, **named):
    with pytest.raises(InputError) as caught:
        call(*arguments, **named)
    return str(caught.value)


def same(one, two):
    assert one.header == two.header
    np.testing.assert_array_equal(one.weights, two.weights)
    np.testing.assert_array_equal(one.intercept, two.intercept)


def other_names():
    return [
        pytest.param(setting, name, id=name)
        for setting in SETTINGS
        for name in setting.names
        if name not in ARGUMENTS and name not in KEPT_APART
    ]


@pytest.mark.parametrize(("setting", "name"), other_names())
def test_fit_takes_every_name_of_a_setting(setting, name):
    value = VALUES[setting.fit]
    solver = {"solver": "dual_coordinate", "bias": "none", "max_iterations": 2} if setting.fit == "seed" else {}
    given = False if name == "fit_intercept" else value
    one = bmrm.fit(X, Y, **{setting.fit: value}, **solver)
    same(bmrm.fit(X, Y, **{name: given}, **solver), one)
    if name != "fit_intercept":
        assert "the same setting" in refused(bmrm.fit, X, Y, **{name: value, setting.fit: value})


def test_every_setting_is_an_argument_of_fit_and_has_an_effect():
    plain = bmrm.fit(X, Y, solver="dual_coordinate", max_iterations=1, bias="none", lam=1e-3)
    for setting in SETTINGS:
        assert setting.fit in ARGUMENTS
    for name in ("lam", "seed", "sample_weight", "loss", "regularizer", "scale", "positive_label", "bias"):
        how = {"solver": "dual_coordinate", "max_iterations": 1, "bias": "regularized" if name == "bias" else "none"}
        how |= {"lam": 1e-3, "solver": "lbfgs" if name == "regularizer" else "dual_coordinate"}
        value = VALUES[name] if name != "bias" else "regularized"
        assert not np.array_equal(bmrm.fit(X, Y, **how | {name: value}).weights, plain.weights), name


def test_no_name_means_two_settings():
    names = [name for setting in SETTINGS for name in setting.names]
    assert len(names) == len(set(names))
    assert not set(names) - KEPT_APART & set(ANSWERS)


@pytest.mark.parametrize("kind", REGISTRIES)
def test_no_name_of_ours_is_answered_as_if_it_were_not(kind):
    assert not set(ELSEWHERE[kind]) & {entry.name for entry in REGISTRIES[kind].all()}
    for entry in REGISTRIES[kind].all():
        for option in REGISTRIES[kind].options(entry.name):
            others = set(REGISTRIES[kind].options(entry.name)) - {option}
            assert canonical(option, others) is None, (entry.name, option)


@pytest.mark.parametrize("kind", REGISTRIES)
def test_names_of_other_programs_are_answered(kind):
    for name, text in ELSEWHERE[kind].items():
        assert name == name.lower()
        for spelled in {name, name.upper(), name.replace("_", "-"), name.replace("_", " ")}:
            said = refused(bmrm.fit, X, Y, **{kind: spelled})
            assert said == f"unknown {kind} {spelled!r}; here it is {text} (see the page Coming from another program)"
        words = set(text.replace(",", " ").replace(";", " ").split())
        known = {entry.name for registry in REGISTRIES.values() for entry in registry.all()}
        assert words & known, (name, text)


@pytest.mark.parametrize("name", ELSEWHERE["data format"])
def test_formats_of_other_programs_are_answered(name, tmp_path, capsys):
    (tmp_path / "rows").write_text("1 1:2\n")
    assert main(["info", str(tmp_path / "rows"), "--format", name]) == 2
    text = ELSEWHERE["data format"][name]
    assert f"unknown data format {name!r}; here it is {text}" in capsys.readouterr().err
    assert set(text.replace(",", " ").split()) & {entry.name for entry in formats.all()}
    assert name not in {entry.name for entry in formats.all()}


def test_the_words_of_the_issue_name_the_right_thing():
    assert "logistic" in refused(bmrm.fit, X, Y, loss="log_loss")
    assert "least_squares" in refused(bmrm.fit, X, Y, loss="squared_error")
    assert "dual_coordinate" in refused(bmrm.fit, X, Y, solver="liblinear")
    assert "least_squares with the regularizer l2" in refused(bmrm.Regressor("ridge").fit, X, Y)
    assert "did you mean 'logistic'" in refused(bmrm.fit, X, Y, loss="logistc")
    assert "use lam: 1 / (C m)" in refused(bmrm.fit, X, Y, C=1.0)
    assert "use alpha: 1 / (C m)" in refused(bmrm.Classifier, C=1.0)
    assert "use lam: 1 / (C m)" in refused(REGULARIZERS.make, "l2", {"C": 1.0})
    assert "(did you mean 'loss'?)" in refused(bmrm.fit, X, Y, los="hinge")
    assert "'auto'" not in refused(bmrm.fit, X, Y, nonsense=1)


@pytest.mark.parametrize("word", sorted(ANSWERS))
def test_words_of_other_programs_are_answered(word):
    name, text = ANSWERS[word]
    setting = next((setting for setting in SETTINGS if setting.fit == name), None)
    assert (setting is None) == (name == "")
    if word in REGULARIZERS.options("elastic_net"):  # the message about an option of ours comes first
        return
    said = refused(bmrm.fit, X, Y, **{word: 1})
    assert said == f"fit has no argument {word!r}{answer(word, ARGUMENTS, 'fit')}"
    assert text in said
    assert f"use {name}: " in said or not name
    if word not in inspect.signature(bmrm.Classifier).parameters:
        said = refused(bmrm.Classifier, **{word: 1})
        assert said.startswith(f"Classifier has no argument {word!r}")
        assert text in said
        assert setting is None or not setting.estimator or f"use {setting.estimator}: " in said


@pytest.mark.parametrize("kind", REGISTRIES)
def test_options_of_plug_ins_have_their_place(kind):
    for entry in REGISTRIES[kind].all():
        for option in REGISTRIES[kind].options(entry.name):
            if canonical(option, ARGUMENTS) is not None:
                continue
            said = refused(bmrm.fit, X, Y, **{kind: entry.name, option: 1})
            place = f"solver_options={{{option!r}: ...}}" if kind == "solver" else f"{kind}={{'name': {entry.name!r}, "
            assert f"fit has no argument {option!r}; it is an option of {kind} {entry.name}: {place}" in said


def test_solver_options_reach_the_solver():
    for solver, options in (("lbfgs", {"memory": 1}), ({"name": "lbfgs"}, {"memory": 1, "max_iter": 4})):
        model = bmrm.fit(X, Y, loss="logistic", solver=solver, solver_options=options, lam=1e-4)
        whole = {"name": "lbfgs", **options}
        same(model, bmrm.fit(X, Y, loss="logistic", solver=whole, lam=1e-4))
    assert "no option 'memory'" in refused(bmrm.fit, X, Y, solver="newton", solver_options={"memory": 1})
    assert "solver_options is 5" in refused(bmrm.fit, X, Y, solver_options=5)
    assert "given twice" in refused(bmrm.fit, X, Y, tolerance=1.0, solver_options={"tolerance": 1.0})
    assert "same setting" in refused(bmrm.fit, X, Y, tolerance=1.0, solver_options={"tol": 1.0})
    assert "given twice" in refused(bmrm.fit, X, Y, tolerance=1.0, solver={"name": "lbfgs", "tolerance": 1.0})
    assert "given twice" in refused(bmrm.fit, X, Y, lam=1.0, regularizer={"name": "l2", "lambda": 1.0})
    made = SOLVERS.make("lbfgs")
    for beside in ({"tolerance": 1.0}, {"seed": 1}, {"solver_options": {"memory": 1}}):
        assert "beside a solver that is made already" in refused(bmrm.fit, X, Y, solver=made, **beside)


def test_minimize_has_the_same_words():
    risk = bmrm.LinearRisk(bmrm.Dataset.from_arrays(X, 2.0 * Y - 1.0), LOSSES.make("hinge"))
    one = bmrm.minimize(risk, bmrm.L2(1e-2), "bundle", max_iterations=3, tolerance=1e-9)
    two = bmrm.minimize(risk, bmrm.L2(1e-2), "bundle", max_iter=3, tol=1e-9)
    assert one.iterations == two.iterations == 3
    assert one.objective == two.objective
    three = bmrm.minimize(risk, bmrm.L2(1e-2), "bundle", max_iter=3, tol=1e-9, solver_options={"cuts_per_pass": 3})
    assert three.objective != one.objective
    assert "minimize has no argument 'C'; use lam" in refused(bmrm.minimize, risk, bmrm.L2(1.0), C=1)
    assert "solver_options={'memory': ...}" in refused(bmrm.minimize, risk, bmrm.L2(1.0), "lbfgs", memory=1)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_take_every_name_of_a_setting(name):
    cls = getattr(bmrm, name)
    own = cls().get_params()
    for setting in SETTINGS:
        if setting.estimator not in own or setting.estimator in KEPT_APART:
            continue
        value = VALUES[setting.fit]
        for word in setting.names:
            given = value
            if setting.fit == "bias":
                given, value = ("none" if word == "bias" else False), False
            assert cls(**{word: given}).get_params()[setting.estimator] == value
            assert cls().set_params(**{word: given}).get_params()[setting.estimator] == value
            if word != setting.estimator:
                assert "the same setting" in refused(cls, **{word: given, setting.estimator: value})
    assert f"{name} has no parameter 'zzz'" in refused(cls().set_params, zzz=1)
    assert f"{name} has no argument 'penalty'; use regularizer: " in refused(cls, penalty="l1")
    assert f"{name} has no parameter 'C'; use alpha: " in refused(cls().set_params, C=1)


def test_searches_take_the_names_too():
    search = GridSearchCV(bmrm.Classifier(), {"lam": [1e-3, 1e3]}, cv=2).fit(X, Y)
    assert search.best_estimator_.alpha == search.best_params_["lam"] == 1e-3
    with pytest.raises(InputError, match="bias is 'regularized', expected none or free"):
        bmrm.Classifier(bias="regularized")
    with pytest.raises(InputError, match="fit_intercept is 'no', expected true or false"):
        bmrm.fit(X, Y, fit_intercept="no")


def test_weights_have_other_names_in_fit_of_estimators():
    weights = 1.0 + np.arange(40)
    one = bmrm.Classifier(tol=1e-8).fit(X, Y, weights)
    two = bmrm.Classifier(tol=1e-8).fit(X, Y, weights=weights)
    np.testing.assert_array_equal(one.coef_, two.coef_)
    assert "Classifier.fit has no argument 'class_weight'" in refused(bmrm.Classifier().fit, X, Y, class_weight=1)


def test_mappings_take_the_names_too():
    for word in ("lambda", "lam", "alpha", "lambda_"):
        assert REGULARIZERS.instance({"name": "l2", word: 0.5}) == bmrm.L2(0.5)
    assert SOLVERS.make("lbfgs", {"tol": 0.5, "max_iter": 2}) == SOLVERS.make(
        "lbfgs", {"tolerance": 0.5, "max_iterations": 2}
    )
    assert SOLVERS.make("pegasos", {"random_state": 2}).seed == 2
    assert "the same setting" in refused(REGULARIZERS.make, "l2", {"lam": 1.0, "alpha": 1.0})


PLAIN = {"data": {"train": "sklearn:iris"}, "loss": "softmax", "regularizer": {"name": "l2", "lambda": 0.5}}
FIELDS = {"lam": 0.03, "tolerance": 1e-5, "max_iterations": 3, "seed": 5, "sample_weight": "w.txt", "positive_label": 1}
FIELDS |= {"bias": "none"}


def config_of(section, word, value, folder, more=()):
    """The settings of a file with this field, in place of its other names."""
    config = {name: dict(part) if isinstance(part, dict) else part for name, part in PLAIN.items()}
    inside = config if section is None else config.setdefault(section, {})
    if section == "regularizer":
        del inside["lambda"]
    inside[word] = value
    (folder / "a.yaml").write_text(yaml.safe_dump(config))
    return load_settings(folder / "a.yaml", more).plain()


def fields():
    return [
        pytest.param(setting, word, id=f"{setting.config}-{word}")
        for setting in SETTINGS
        if setting.fit in FIELDS
        for word in setting.names
        if word not in KEPT_APART
    ]


@pytest.mark.parametrize(("setting", "word"), fields())
def test_configs_take_every_name_of_a_setting(setting, word, tmp_path, monkeypatch):
    section, _, own = setting.config.rpartition(".")
    section, value = section or None, FIELDS[setting.fit]
    given = False if word == "fit_intercept" else value
    plain = config_of(section, own, value, tmp_path)
    assert config_of(section, word, given, tmp_path) == plain
    text, field = str(given).lower(), ".".join(filter(None, (section, word)))
    assert config_of(section, own, "another", tmp_path, [f"{field}={text}"]) == plain, "--set wins by any name"
    if word != own:
        config = yaml.safe_load((tmp_path / "a.yaml").read_text())
        (config if section is None else config[section]).update({own: value, word: given})
        (tmp_path / "a.yaml").write_text(yaml.safe_dump(config))
        said = refused(load_settings, tmp_path / "a.yaml")
        assert re.search(r"a\.yaml, line \d+: .*(the same setting|under another name)", said)


@pytest.mark.parametrize(("setting", "word"), fields())
def test_the_command_line_takes_every_name_of_a_setting(setting, word, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    place, value = tuple(setting.config.split(".")), FIELDS[setting.fit]
    given = "false" if word == "fit_intercept" else str(value)

    def settings(*words):
        parsed = parse(["train", "sklearn:iris", "--loss", "softmax", *words])
        return train.settings_of(parsed, "train")

    plain = settings(f"--{'.'.join(place)}", str(value))
    for flag in (f"--{word}", f"--{word.replace('_', '-')}", f"--{'.'.join((*place[:-1], word))}"):
        if word not in KEPT_APART and (word != place[-1] or flag.count(".") == len(place) - 1):
            assert settings(flag, given) == plain, flag
    if word != place[-1]:
        said = refused(settings, f"--{word}", given, f"--{'.'.join(place)}", str(value))
        assert said.endswith("are the same setting, expected one of them")
        (tmp_path / "a.yaml").write_text(yaml.safe_dump(plain))
        assert train.settings_of(parse(["train", "a.yaml", f"--{word}", given]), "train") == plain, (
            "options win over the file"
        )


@pytest.mark.parametrize("word", sorted(ANSWERS))
def test_configs_and_options_answer_words_of_other_programs(word, tmp_path, capsys):
    name, text = ANSWERS[word]
    setting = next((setting for setting in SETTINGS if setting.fit == name), None)
    said = refused(config_of, None, word, 1, tmp_path)
    if word not in Settings.model_fields:
        assert re.match(rf".*a\.yaml, line \d+: unknown field '{word}'", said)
        assert text in said
        assert setting is None or not setting.config or f"use {setting.config}: " in said
    with pytest.raises(SystemExit) as end:
        parse(["train", "sklearn:iris", f"--{word}", "1"])
    assert end.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith(f"bmrm train: unknown argument '--{word}'")
    assert text in said
    assert "did you mean" not in said


def test_the_tolerance_has_one_default(tmp_path):
    defaults = {field.default for entry in SOLVERS.all() for field in entry.parameters if field.name == "tolerance"}
    defaults |= {inspect.signature(getattr(bmrm, name)).parameters["tol"].default for name in ESTIMATORS}
    assert defaults == {1e-4}
    for solver in ("lbfgs", {"name": "bundle"}, {"max_iter": 3}):
        assert config_of(None, "solver", solver, tmp_path)["solver"]["tolerance"] == 1e-4
        old = (tmp_path / "a.yaml").read_text()
        (tmp_path / "a.yaml").write_text(f"schema: 1\n{old}")
        assert load_settings(tmp_path / "a.yaml").plain()["solver"]["tolerance"] == 1e-3
        assert load_settings(tmp_path / "a.yaml", ["solver.tol=0.5"]).plain()["solver"]["tolerance"] == 0.5
    (tmp_path / "a.yaml").write_text(yaml.safe_dump(PLAIN | {"schema": 1}))
    assert load_settings(tmp_path / "a.yaml").plain()["solver"]["tolerance"] == 1e-3
    (tmp_path / "a.yaml").write_text(yaml.safe_dump(PLAIN | {"schema": 1, "solver": {"tol": 0.5}}))
    assert load_settings(tmp_path / "a.yaml").plain()["solver"]["tolerance"] == 0.5
    for wanted in (True, False):
        data = {"train": "sklearn:iris", "fit_intercept": wanted}
        (tmp_path / "a.yaml").write_text(yaml.safe_dump(PLAIN | {"schema": 1, "data": data}))
        assert load_settings(tmp_path / "a.yaml").plain()["data"]["bias"] == ("free" if wanted else "none")


def test_a_field_at_another_place_is_shown_to_its_own(tmp_path):
    assert "unknown field 'alpha'; use regularizer.lambda" in refused(config_of, None, "alpha", 1.0, tmp_path)
    assert "unknown field 'data.tol'; use solver.tolerance" in refused(config_of, "data", "tol", 1.0, tmp_path)
    assert "data.fit_intercept is 'no', expected true or false" in refused(
        config_of, "data", "fit_intercept", "no", tmp_path
    )


def test_an_option_of_ones_own_keeps_its_name(tmp_path, monkeypatch):
    """A plug-in with an option `alpha` besides `lam` gets both, from the config too."""
    (tmp_path / "mine.py").write_text(
        "from dataclasses import dataclass\nimport bmrm\n"
        "@dataclass(frozen=True)\nclass Mine(bmrm.L2):\n    alpha: float = 1.0\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    made = REGULARIZERS.make("mine:Mine", {"alpha": 3.0, "lam": 2.0})
    assert (made.alpha, made.lam) == (3.0, 2.0)
    monkeypatch.chdir(tmp_path)
    config = PLAIN | {"regularizer": {"name": "mine:Mine", "alpha": 3.0, "lam": 2.0}}
    (tmp_path / "a.yaml").write_text(yaml.safe_dump(config))
    found = load_settings("a.yaml", ["regularizer.lambda=4"]).plain()["regularizer"]
    assert (found["alpha"], found["lambda"]) == (3.0, 4.0)
