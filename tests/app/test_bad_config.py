"""Configs that no one should write: each ends in one message, never in a traceback."""

from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bmrm.app.config.config import load_settings
from bmrm.cli import main
from bmrm.problem import InputError, shown

CONFIG = "data: {train: a.csv}\nloss: hinge\nregularizer: {name: l2, lambda: 0.1}\n"

ASSIGNMENTS = {
    "seed=2020-99-99": "'2020-99-99' is no timestamp",
    "seed=!!int abc": "'abc' is no int",
    "seed=!!float abc": "'abc' is no float",
    "seed=!!bool maybe": "'maybe' is no bool",
    "data=!!timestamp x": "'x' is no timestamp",
    "seed=" + "9" * 5000: "is no int",
    "seed=0x" + "f" * 5000: "seed is <int>, expected",
    "seed=" + "[" * 5000: "nested too deeply",
    "seed=" + "- " * 3000: "nested too deeply",
    "data=" + "{" * 3000: "nested too deeply",
    "loss=:x": "loss ':x': expected module:Class",
    "loss=.:x": "loss '.:x': expected module:Class",
    "data.format=..x:y": "data format '..x:y': expected module:Class",
    "search=:x": "search ':x': expected module:Class",
    "solver='x:'": "solver 'x:': expected module:Class",
    "solver.max_iterations=-" + "9" * 400: "solver.max_iterations is -9999",
    "solver.max_iterations=" + "9" * 400: "at most 64 bits",
    "data.dimension=" + "9" * 400: "data.dimension is 9999",
    'data.train="a\\0b"': "holds a NUL",
    'data.train="\\ud800"': "half a character",
    'data={train: a, "\\ud800": 1}': "half a character",
    'output.directory="a\\0b"': "holds a NUL",
    "loss=" + "x" * 300: "unknown loss 'xxx",
    "x" * 3000 + "=1": "unknown field 'xxx",
    "x" * 3000: "expected FIELD=VALUE",
    "loss={name: hinge, ? " + "y" * 3000 + " : 1}": "has no option 'yyy",
    "seed=" + "y" * 3000: "seed is 'yyy",
}


@pytest.fixture
def config(tmp_path):
    (tmp_path / "c.yaml").write_text(CONFIG)
    return tmp_path / "c.yaml"


@pytest.mark.parametrize("assignment", ASSIGNMENTS, ids=lambda text: text[:30].encode("unicode_escape").decode())
def test_one_short_message(config, assignment):
    with pytest.raises(InputError) as caught:
        load_settings(config, [assignment])
    message = str(caught.value)
    assert ASSIGNMENTS[assignment] in message
    assert len(message) < 600
    assert "\n" not in message


@pytest.mark.parametrize(
    "word",
    [
        "data.train=" + "x" * 300,
        "data.train=" + "x" * 300 + "*",
        "data.train=a{rank:99999999999d}",
        "data.train=a{rank:999d}",
        "data.weights=" + "x" * 300,
        "output.directory=" + "x" * 300,
        "output.directory=" + "x" * 300 + "/y",
        "data.format={name: conll, templates: " + "x" * 300 + "}",
    ],
)
def test_names_that_no_file_has_end_with_status_2(config, word, capsys, monkeypatch):
    monkeypatch.chdir(config.parent)
    (config.parent / "a.csv").write_text("1,2,0\n3,4,1\n")
    assert main(["train", str(config), "--quiet", "--set", word]) == 2
    said = capsys.readouterr().err
    assert said.startswith("bmrm: ")
    assert "Traceback" not in said
    assert sorted(path.name for path in config.parent.iterdir()) == ["a.csv", "c.yaml"]


def test_aliases_that_grow_without_end(config):
    lines = ["a0: &a0 [x]"] + [f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 9)}]" for k in range(1, 30)]
    config.write_text("\n".join(lines) + "\n" + CONFIG + "seed: *a29\n")
    with pytest.raises(InputError, match="seed is"):
        load_settings(config)


def test_values_are_cut_in_the_middle():
    assert shown("x") == "'x'"
    assert len(shown("x" * 10**6)) == 60
    assert shown(10**5000) == "<int>"
    looped = []
    looped.append(looped)
    assert shown(looped) == "[[[[[...]]]]]"


fields = st.sampled_from(
    ["seed", "data", "data.train", "data.format", "data.dimension", "data.positive_label", "data.weights", "loss",
     "loss.name", "regularizer", "regularizer.lambda", "solver", "solver.max_iterations", "solver.tolerance", "search",
     "output", "output.directory", "output.checkpoint_every", "schema", "nothing", "data..train", ""]
)  # fmt: skip
tags = [
    f"!!{name} " for name in ("int", "float", "timestamp", "binary", "set", "omap", "null", "bool", "python/object:a.b")
]
signs = ["!x ", "&a ", "*a", "<<", "? ", ": ", "- ", *"[]{},#|>'\" \n\t~", "\\0", "\\ud800"]
words = [
    "2020-99-99",
    "2020-01-01",
    "0x",
    "1e999",
    "-1e999",
    ".inf",
    ".nan",
    "null",
    "true",
    "0",
    "-1",
    "hinge",
    "l2",
    "auto",
    "csv",
    ":x",
    ".:x",
    "..x:y",
    "a:b",
    "name",
    "lambda",
    "scale",
    "over",
    "{rank:9d}",
    "sklearn:iris",
]
pieces = st.sampled_from([*tags, *signs, *words, "9" * 400, "9" * 5000])
texts = st.lists(pieces | st.text(max_size=4), max_size=8).map("".join)


@given(field=fields, text=texts)
@example("loss", "{name: hinge, ? [1] : 2}")
def test_any_assignment_is_read_or_refused_with_a_message(tmp_path_factory, field, text):
    path = tmp_path_factory.getbasetemp() / "c.yaml"
    path.write_text(CONFIG)
    with suppress(InputError):
        load_settings(path, [f"{field}={text}"])


@given(text=texts)
def test_any_text_is_read_or_refused_with_a_message(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "d.yaml"
    path.write_bytes((CONFIG + text).encode("utf-8", "surrogatepass"))
    with suppress(InputError):
        load_settings(path)


def test_of_very_many_errors_the_first_are_listed(tmp_path):
    path = tmp_path / "d.yaml"
    path.write_text(CONFIG + "".join(f"unknown_{k}: 1\n" for k in range(40)))
    with pytest.raises(InputError) as found:
        load_settings(path)
    lines = str(found.value).splitlines()
    assert len(lines) == 13
    assert "unknown field 'unknown_0'" in lines[0]
    assert lines[-1].endswith("28 more errors")
