"""Exported models are scored again by other programs: LIBLINEAR, Vowpal Wabbit, onnxruntime, a C compiler."""

import ctypes
import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import bmrm
from bmrm.app.export import EXPORTS
from bmrm.app.export._core.murmur import murmur3
from bmrm.cli import main
from bmrm.problem import IncompatibleError, InputError

random = np.random.default_rng(5)
X = random.normal(size=(80, 6)) * (random.random((80, 6)) < 0.8)
F = X @ random.normal(size=(6, 3)) + 0.3
LABELS = {
    "numbers": np.array([-1, 2, 7]),
    "text": np.array(["ham?", 'spam "x"', "ångström"]),
    "truth": np.array([False, True, True]),
    "floats": np.array([0.5, 1.25, 3.0]),
    "times": np.array(["2020-01-01", "2021-02-03", "2022-01-01"], "datetime64[D]"),
}
TWO, SEVERAL = ("hinge", "logistic", "exponential", "modified_huber", "roc_area"), ("softmax", "multiclass_hinge")
NUMBERS = ("least_squares", "poisson", "rank_hinge")


def fitted(loss, labels="numbers", **options):
    """A model, whose intercept is not 0 where it has one."""
    more = {}
    if loss in TWO:
        y = LABELS[labels][(F[:, 0] > 0.2).astype(int)]
    elif loss in SEVERAL:
        y = LABELS[labels][np.argmax(F, axis=1)]
    else:
        y, more = np.round(np.exp(0.5 * F[:, 0])), {"groups": np.arange(80) // 8} if loss == "rank_hinge" else {}
    return bmrm.fit(X, y, loss=loss, lam=1e-2, tolerance=1e-3, **more, **options)


def liblinear_of(path):
    """LIBLINEAR's model format, read as its documentation says: decisions from rows, and labels."""
    head, _, rows = path.read_text().partition("\nw\n")
    facts = dict(line.split(" ", 1) for line in head.splitlines())
    w = np.array([line.split() for line in rows.splitlines()], float)
    bias = float(facts["bias"])
    assert len(w) == int(facts["nr_feature"]) + (bias >= 0)
    labels = [int(label) for label in facts.get("label", "").split()]

    def decide(X):
        return (np.hstack((X, np.full((len(X), 1), bias))) if bias >= 0 else X) @ w

    return facts, labels, decide


@pytest.mark.parametrize("loss", [*TWO, *SEVERAL])
def test_liblinear_by_a_reader_of_its_format(loss, tmp_path):
    model = fitted(loss)
    model.export(tmp_path / "m", "liblinear")
    facts, labels, decide = liblinear_of(tmp_path / "m")
    f = decide(X)
    np.testing.assert_allclose(f if f.shape[1] > 1 else f[:, 0], model.decision_function(X), rtol=1e-12)
    place = f.argmax(axis=1) if f.shape[1] > 1 else np.where(f[:, 0] > 0.0, 0, 1)
    predicted = np.array(labels)[place]
    np.testing.assert_array_equal(predicted, model.predict(X))
    assert (facts["solver_type"] == "L2R_LR") == (loss == "logistic")


@pytest.mark.parametrize("loss", ["hinge", "logistic", "softmax", "multiclass_hinge", "least_squares", "rank_hinge"])
@pytest.mark.parametrize("bias", ["free", "none"])
def test_liblinear_by_its_own_predict(loss, bias, tmp_path):
    util = pytest.importorskip("liblinear.liblinearutil")
    if loss == "rank_hinge":
        bias = "none"
    model = fitted(loss, bias=bias)
    model.export(tmp_path / "m", "liblinear")
    theirs = util.load_model(str(tmp_path / "m"))
    options = "-b 1 -q" if loss == "logistic" else "-q"
    predicted, _, values = util.predict([], sp.csr_matrix(X), theirs, options)
    if loss == "logistic":  # its order is that of the file
        np.testing.assert_allclose(np.array(values)[:, ::-1], model.predict_proba(X), rtol=1e-10)
        _, _, values = util.predict([], sp.csr_matrix(X), theirs, "-q")
    np.testing.assert_allclose(np.squeeze(values), model.decision_function(X), rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(predicted, model.predict(X), rtol=1e-10, atol=1e-14)


def weights_of_vw(path):
    """The weights of a file of VW by index, as its source reads one, and the header."""
    content = path.read_bytes()
    place = 0

    def take(size):
        nonlocal place
        place += size
        return content[place - size : place]

    def number():
        return int.from_bytes(take(4), "little")

    version, name, kind = take(number()), take(number()), take(1)
    begin = 4 + len(version)
    low, high = np.frombuffer(take(8), np.float32)
    bits, lda, ngram, skips = (number() for _ in range(4))
    options = take(number())
    assert (name, kind, lda, ngram, skips, number()) == (b"\0", b"m", 0, 0, 0, 4)
    assert begin < place
    checksum, resumed = number(), take(1)
    assert resumed == b"\0"
    table = np.frombuffer(content[place:], [("index", "<u4"), ("weight", "<f4")])
    assert np.all(np.diff(table["index"].astype(int)) > 0)
    assert low < -1e38
    assert high > 1e38
    return dict(zip(table["index"].tolist(), table["weight"].tolist())), bits, options.decode(), checksum


@pytest.mark.parametrize("loss", ["hinge", "softmax", "least_squares"])
def test_vw_by_a_reader_of_its_format(loss, tmp_path):
    model = fitted(loss)
    model.export(tmp_path / "m", "vw")
    model.export(tmp_path / "t", {"name": "vw", "readable": True})
    weights, bits, options, checksum = weights_of_vw(tmp_path / "m")
    stride, mask = (4, (1 << bits) - 1) if loss == "softmax" else (1, (1 << bits) - 1)
    scores = 3 if loss == "softmax" else 1
    table = np.array(
        [[weights.get((k * stride + s) & mask, 0.0) for s in range(scores)] for k in (*range(6), 11650396)]
    )
    f = X @ table[:-1] + table[-1]
    np.testing.assert_allclose(np.squeeze(f), model.decision_function(X), rtol=1e-5, atol=1e-5)
    assert ("--oaa 3 --named_labels -1,2,7" in options) == (loss == "softmax")
    head, _, lines = (tmp_path / "t").read_text().partition("\n:0\n")
    shown = {int(line.split(":")[1]): float(line.split(":")[2]) for line in lines.splitlines()}
    assert shown.keys() == weights.keys()
    assert all(weights[k] == np.float32(shown[k]) for k in shown)
    assert f"Checksum: {checksum}" in head


def vw_predictions(model, path, names, rows, tmp_path):
    from vowpalwabbit import Workspace

    text = ("| " + " ".join(f"{name}:{value!r}" for name, value in zip(names, row)) for row in rows.tolist())
    (tmp_path / "rows.txt").write_text("\n".join(text) + "\n")
    Workspace(f"-t -i {path} --quiet -d {tmp_path}/rows.txt -p {tmp_path}/out.txt").finish()
    return (tmp_path / "out.txt").read_text().split()


@pytest.mark.parametrize("loss", ["hinge", "softmax", "least_squares"])
def test_vw_by_itself(loss, tmp_path):
    pytest.importorskip("vowpalwabbit")
    model = fitted(loss)
    model.export(tmp_path / "m", "vw")
    found = vw_predictions(model, tmp_path / "m", range(6), X, tmp_path)
    if loss == "softmax":
        assert list(map(int, found)) == model.predict(X).tolist()
    else:
        np.testing.assert_allclose(list(map(float, found)), model.decision_function(X), rtol=1e-5, atol=2e-5)


def test_vw_knows_features_by_name(tmp_path):
    pandas, _ = pytest.importorskip("pandas"), pytest.importorskip("vowpalwabbit")
    names = ["age", "7", "x.y", "ångström", "town=Oslo", "e"]
    model = bmrm.fit(pandas.DataFrame(X, columns=names), F[:, 0] > 0.0, loss="hinge", lam=1e-2)
    model.export(tmp_path / "m", "vw")
    found = vw_predictions(model, tmp_path / "m", names, X, tmp_path)
    np.testing.assert_allclose(list(map(float, found)), model.decision_function(X), rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize(("data", "found"), [(b"", 0), (b"abc", 0xB3DD93FA), (b"Hello, world!", 0xC0363E43)])
def test_murmur_is_murmur(data, found):
    assert murmur3(data, 0) == found


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("loss", [*TWO, *SEVERAL])
def test_onnx(loss, labels, tmp_path):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    if labels == "truth" and loss in SEVERAL:
        return
    model = fitted(loss, labels)
    model.export(tmp_path / "m.onnx", "onnx")
    session = runtime.InferenceSession(str(tmp_path / "m.onnx"), providers=["CPUExecutionProvider"])
    found = dict(zip([one.name for one in session.get_outputs()], session.run(None, {"X": X})))
    np.testing.assert_allclose(np.squeeze(found["scores"]), model.decision_function(X), rtol=1e-12, atol=1e-14)
    predicted = model.predict(X)
    expected = predicted.astype(str) if labels == "times" else predicted
    assert found["label"].tolist() == expected.tolist()
    if loss in ("logistic", "exponential", "modified_huber", "softmax"):
        np.testing.assert_allclose(found["probabilities"], model.predict_proba(X), rtol=1e-10, atol=1e-14)
    else:
        assert "probabilities" not in found


@pytest.mark.parametrize("loss", NUMBERS)
def test_onnx_of_numbers(loss, tmp_path):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    model = fitted(loss)
    model.export(tmp_path / "m.onnx", "onnx")
    session = runtime.InferenceSession(str(tmp_path / "m.onnx"), providers=["CPUExecutionProvider"])
    _, found = session.run(["scores", "value"], {"X": X})
    np.testing.assert_allclose(found[:, 0], model.predict(X), rtol=1e-12)


def compiled(path, prefix="model"):
    """A C file as a library, without warnings."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    library = path.with_suffix(".so")
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-O2"]
    subprocess.run([compiler, *flags, "-o", str(library), str(path), "-lm"], check=True)
    loaded = ctypes.CDLL(str(library))
    numbers = np.ctypeslib.ndpointer(np.float64, flags="C")
    for name in ("scores", "label", "values", "probabilities"):
        function = getattr(loaded, f"{prefix}_{name}", None)
        if function is not None:
            function.argtypes = [numbers] if name == "label" else [numbers, numbers]
            function.restype = ctypes.c_size_t if name == "label" else None
    places = np.ctypeslib.ndpointer(np.uintp, flags="C")
    getattr(loaded, f"{prefix}_scores_sparse").argtypes = [ctypes.c_size_t, places, numbers, numbers]
    getattr(loaded, f"{prefix}_scores_sparse").restype = None
    return loaded


def of_rows(function, rows, width):
    """What a function gives for each row."""
    found = np.full((len(rows), width), np.nan)
    for row, out in zip(np.ascontiguousarray(rows), found):
        function(row, out)
    return found


@pytest.mark.parametrize("scale", ["none", "unit_norm"])
@pytest.mark.parametrize("loss", ["logistic", "modified_huber", "exponential", "softmax", "multiclass_hinge"])
def test_c(loss, scale, tmp_path):
    model = fitted(loss, scale=scale)
    model.export(tmp_path / "m.c", "c")
    code = compiled(tmp_path / "m.c")
    f = of_rows(code.model_scores, X, 3 if loss in SEVERAL else 1)
    np.testing.assert_allclose(np.squeeze(f), model.decision_function(X), rtol=1e-12, atol=1e-14)
    sparse = np.full_like(f, np.nan)
    for x, out in zip(X, sparse):
        places = np.flatnonzero(x).astype(np.uintp)
        code.model_scores_sparse(len(places), places, x[places.astype(int)], out)
    np.testing.assert_allclose(sparse, f, rtol=1e-12, atol=1e-14)
    labels = (ctypes.c_longlong * len(model.labels)).in_dll(code, "model_labels")
    assert [labels[code.model_label(row)] for row in f] == model.predict(X).tolist()
    if loss == "multiclass_hinge":
        assert not hasattr(code, "model_probabilities")
    else:
        p = of_rows(code.model_probabilities, f, len(model.labels))
        np.testing.assert_allclose(p, model.predict_proba(X), rtol=1e-10, atol=1e-300)


def test_c_has_names_and_labels_of_any_kind(tmp_path):
    pandas = pytest.importorskip("pandas")
    names = ["age", 'a "b"\\', "what??/", "ångström", "tab\t1", ""]
    y = LABELS["text"][np.argmax(F, axis=1)]
    model = bmrm.fit(pandas.DataFrame(X, columns=names), y, loss="softmax", lam=1e-2)
    model.export(tmp_path / "m.c", {"name": "c", "prefix": "spam"})
    code = compiled(tmp_path / "m.c", "spam")
    for place, expected in (("spam_features", names), ("spam_labels", model.labels.tolist())):
        found = (ctypes.c_char_p * len(expected)).in_dll(code, place)
        assert [text.decode() for text in found] == expected
    for kind, expected in (("floats", ctypes.c_double), ("truth", ctypes.c_longlong)):
        fitted("hinge", kind).export(tmp_path / f"{kind}.c", "c")
        found = (expected * 2).in_dll(compiled(tmp_path / f"{kind}.c"), "model_labels")
        assert list(found) == LABELS[kind][:2].tolist()


@pytest.mark.parametrize("loss", NUMBERS)
def test_c_of_numbers(loss, tmp_path):
    model = fitted(loss)
    model.export(tmp_path / "m.c", "c")
    code = compiled(tmp_path / "m.c")
    values = of_rows(code.model_values, of_rows(code.model_scores, X, 1), 1)
    np.testing.assert_allclose(values[:, 0], model.predict(X), rtol=1e-12)


@pytest.mark.parametrize("loss", [*TWO, *SEVERAL, *NUMBERS, "ordinal_thresholds"])
def test_json_has_all(loss, tmp_path):
    model = fitted(loss)
    model.export(tmp_path / "m.json", "json")
    plain = json.loads((tmp_path / "m.json").read_text())
    f = X @ np.array(plain["weights"]).T + plain["intercept"]
    np.testing.assert_allclose(np.squeeze(f), model.decision_function(X), rtol=1e-12, atol=1e-14)
    if plain["predicts"] == "sign":
        predicted = np.array(plain["labels"])[(f[:, 0] > 0.0).astype(int)]
    elif plain["predicts"] == "largest":
        predicted = np.array(plain["labels"])[f.argmax(axis=1)]
    elif loss == "ordinal_thresholds":
        predicted = np.array(plain["labels"])[np.searchsorted(plain["arrays"]["cut_points"], f[:, 0])]
    else:
        predicted = {"score": f, "exponential": np.exp(f)}[plain["predicts"]][:, 0]
    np.testing.assert_allclose(predicted, model.predict(X), rtol=1e-12, atol=1e-14)


def test_what_a_format_cannot_say_is_refused_at_once_and_nothing_is_written(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcdef"))
    y = LABELS["text"][np.argmax(F, axis=1)]
    named = bmrm.fit(frame, y, loss="softmax", scale="unit_norm", lam=1e-2)
    with pytest.raises(IncompatibleError) as found:
        named.export(tmp_path / "m", "liblinear")
    said = str(found.value)
    for words in ("names of its features", "rows that are divided by their norm", "labels that are no whole numbers"):
        assert words in said
    with pytest.raises(IncompatibleError, match="vw cannot say what the model has: rows that are divided"):
        named.export(tmp_path / "m", "vw")
    grades = fitted("ordinal_thresholds")
    for format in ("liblinear", "vw", "onnx", "c"):
        with pytest.raises(IncompatibleError, match="predictions that only its loss can make, cut points"):
            grades.export(tmp_path / "m", format)
    poisson = fitted("poisson")
    with pytest.raises(IncompatibleError, match=r"exp\(score\)"):
        poisson.export(tmp_path / "m", "vw")
    with pytest.raises(IncompatibleError, match="the name of the feature 'a b'"):
        bmrm.fit(frame.rename(columns={"a": "a b"}), F[:, 0] > 0.0, loss="hinge").export(tmp_path / "m", "vw")
    with pytest.raises(InputError, match="unknown export format 'pmml'"):
        poisson.export(tmp_path / "m", "pmml")
    with pytest.raises(InputError, match="prefix is '3x', expected a name of C"):
        poisson.export(tmp_path / "m", {"name": "c", "prefix": "3x"})
    assert list(tmp_path.iterdir()) == []
    plain = bmrm.fit(frame, np.argmax(F, axis=1), loss="softmax", lam=1e-2)
    plain.export(tmp_path / "m", {"name": "liblinear", "drop_names": True})
    np.testing.assert_allclose(liblinear_of(tmp_path / "m")[2](X), plain.decision_function(X), rtol=1e-12)


def test_without_the_library_onnx(tmp_path, monkeypatch):
    model = fitted("hinge")
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(IncompatibleError, match=r"which is not installed; pip install 'bmrm\[onnx\]'"):
        model.export(tmp_path / "m", "onnx")
    assert list(tmp_path.iterdir()) == []


def test_sequences_are_refused_but_by_json(tmp_path):
    y, groups = np.array([0, 1, 1, 2] * 20), np.repeat(np.arange(20), 4)
    model = bmrm.fit(X, y, groups=groups, loss="chain_crf", lam=1e-2)
    with pytest.raises(IncompatibleError, match="transitions"):
        model.export(tmp_path / "m", "onnx")
    model.export(tmp_path / "m", "json")
    assert np.array(json.loads((tmp_path / "m").read_text())["arrays"]["transitions"]).shape == (3, 3)


def test_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    fitted("logistic").save("m.npz")
    model = bmrm.load_model("m.npz")
    for format in [entry.name for entry in EXPORTS.all()]:
        assert main(["export", "m.npz", "--to", format, "--out", f"m.{format}"]) == 0
        model.export("expected", format)
        assert (tmp_path / f"m.{format}").read_bytes() == (tmp_path / "expected").read_bytes()
    assert main(["export", "m.npz", "--to", "{name: c, prefix: spam}", "--out", "m.c"]) == 0
    assert "spam_scores" in (tmp_path / "m.c").read_text()
    capsys.readouterr()
    for format, said in (("lib", "unknown export format 'lib'"), ("3", "--to is 3, expected a format")):
        assert main(["export", "m.npz", "--to", format, "--out", "x"]) == 2
        assert said in capsys.readouterr().err
    assert main(["export", "m.npz", "--to", "json", "--out", "no/x"]) == 2
    assert "no/x" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()
