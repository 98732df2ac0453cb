"""config.yaml: what is read, what is refused and how the message says so."""

import dataclasses
import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from bmrm.app.config.config import PLUG_INS, load_settings, resolved_yaml
from bmrm.app.config.schema import json_schema, markdown
from bmrm.app.config.sections import Settings
from bmrm.losses import LOSSES
from bmrm.problem import InputError

MINIMAL = "schema: 2\ndata: {train: a.svm}\nregularizer: {name: l2, lambda: 0.5}\n"


@pytest.fixture
def config(tmp_path):
    def load(text, *overrides):
        path = tmp_path / "job.yaml"
        path.write_text(text)
        return load_settings(path, overrides)

    return load


def refusal(config, text, *overrides) -> str:
    with pytest.raises(InputError) as caught:
        config(text, *overrides)
    return str(caught.value)


def test_defaults_are_those_of_the_design(config):
    plain = config(MINIMAL).plain()
    assert plain["schema"] == 2
    assert plain["data"]["bias"] is None
    assert plain["data"]["scale"] == "none"
    assert plain["data"]["format"] == "auto"
    assert plain["loss"] is None
    assert plain["solver"]["name"] == "auto"
    assert plain["solver"]["tolerance"] == 1e-4
    assert plain["solver"]["max_iterations"] == 10000
    assert plain["solver"]["time_limit"] is None
    assert plain["solver"]["threads"] is None
    assert plain["output"]["directory"] == "runs/job"
    assert plain["seed"] == 0


def test_the_example_of_the_design_is_read(config):
    plain = config(
        """
schema: 2
data:
  train: shards/part-{rank}.svm
  test: a9a.t
  format: auto
  dimension: null
  bias: free
  scale: none
  weights: null
  positive_label: null
loss: {name: hinge}
regularizer: {name: l2, lambda: 1.0e-4}
solver: {name: auto, tolerance: 1.0e-3, max_iterations: 10000, time_limit: null, threads: null}
output: {directory: runs/a9a, checkpoint_every: 60}
seed: 0
"""
    ).plain()
    assert plain["data"]["train"] == ["shards/part-{rank}.svm"]
    assert plain["regularizer"]["lambda"] == 1e-4


SEQUENCES = "chain_crf", "chain_margin", "chain_scaled_margin"
WITHOUT = (
    *("break_even", "partial_roc_area", "precision_at_k", "recall_at_k", "roc_area", "ordinal", "ordinal_thresholds"),
    *("expected_rank_utility", "mean_reciprocal_rank", "ndcg", "rank_hinge", "winner_takes_all"),
    *("novelty", "perceptron", "squared_perceptron"),
)
HEADS = {"schema: 1\n": 1, "schema: 2\n": 2, "": 2}


@pytest.mark.parametrize("entry", LOSSES.all(), ids=lambda entry: entry.name)
@pytest.mark.parametrize("head", HEADS)
def test_the_intercept_that_is_not_given(config, head, entry):
    text = f"data: {{train: a.svm}}\nregularizer: {{name: l2, lambda: 0.5}}\nloss: {json.dumps(section(entry))}\n"
    free = HEADS[head] == 2 and entry.name not in (*WITHOUT, *SEQUENCES)
    settings = config(head + text)
    assert settings.data.bias == ("free" if free else "none")
    assert config(head + text, "data.bias=null") == settings
    assert config(resolved_yaml(settings.plain())) == settings, "a resolved config says it, whatever the default"
    for bias in ("none", "regularized", "free"):
        assert config(head + text, f"data.bias={bias}").data.bias == bias


@pytest.mark.parametrize("name", ["ndcg", "expected_rank_utility", "mean_reciprocal_rank", "winner_takes_all"])
def test_rankings_of_older_files(config, name):
    text = f"data: {{train: a.svm}}\nregularizer: {{name: l2, lambda: 0.5}}\nloss: {name}\n"
    assert config(text).loss["joint"] == "pairs"
    old = config("schema: 1\n" + text)
    assert old.loss["joint"] == "ranks"
    assert config(resolved_yaml(old.plain())) == old
    assert config("schema: 1\n" + text.replace(f"loss: {name}", f"loss: {{name: {name}, joint: pairs}}")) == config(
        text, "data.bias=none", "solver.tolerance=1e-3"
    )


def section(entry):
    """A loss with an example of each option that it needs."""
    needed = {f.name: f.metadata["example"] for f in entry.parameters if f.default is dataclasses.MISSING}
    return {"name": entry.name} | needed


@pytest.mark.parametrize("version", ["0", "3", "'2'", "two", "[1]", "{a: 1}"])
def test_a_schema_that_is_unknown_is_refused(config, version):
    message = refusal(config, MINIMAL.replace("schema: 2", f"schema: {version}"))
    assert "job.yaml, line 1: schema is" in message
    assert "expected 1 or 2" in message
    assert "schema is True, expected a number" in refusal(config, MINIMAL.replace("schema: 2", "schema: true"))


@pytest.mark.parametrize("text", ["1e-4", "1.0e-4", "0.0001", "'1e-4'", ".0001", "+1E-4", "0.1e-3"])
def test_every_way_to_write_a_small_number_is_that_number(config, text):
    assert config(f"{MINIMAL}solver: {{name: auto, tolerance: {text}}}\n").solver["tolerance"] == 1e-4


def test_a_name_stands_for_a_section_and_a_section_for_its_default_name(config):
    plain = config(MINIMAL + "loss: quantile\nsolver: {tolerance: 0.1}\n").plain()
    assert plain["loss"] == {"name": "quantile", "tau": 0.5}
    assert (plain["solver"]["name"], plain["solver"]["tolerance"]) == ("auto", 0.1)


@pytest.mark.parametrize("label", ["no", "off", "7", "-1", "ham", "1.5"])
def test_a_label_is_what_it_looks_like(config, label):
    settings = config(MINIMAL, f"data.positive_label={label}")
    expected = float(label) if label[-1].isdigit() else label
    assert settings.data.positive_label == expected


def test_what_is_written_back_gives_the_same_settings(config, tmp_path):
    first = config(MINIMAL + "loss: {name: quantile, tau: 0.25}\noutput: {directory: there}\nseed: 7\n")
    path = tmp_path / "again.yaml"
    path.write_text(resolved_yaml(first.plain()))
    assert load_settings(path) == first


def test_overrides_win_and_are_yaml(config):
    settings = config(MINIMAL, "solver.tolerance=1e-5", "loss=logistic", "data.train=[x, y]", "data.dimension=null")
    assert settings.solver["tolerance"] == 1e-5
    assert settings.loss == {"name": "logistic"}
    assert settings.data.train == ("x", "y")


def test_an_override_goes_into_a_section_that_is_a_name_or_absent(config):
    settings = config(MINIMAL + "loss: quantile\n", "loss.tau=0.9", "output.directory=out")
    assert settings.loss == {"name": "quantile", "tau": 0.9}
    assert settings.output.directory == "out"


WRONG = {
    "trian: 1": ("unknown field 'trian'",),
    "sede: 1": ("line 4", "unknown field 'sede'", "did you mean 'seed'"),
    "loss: hing": ("line 4", "unknown loss 'hing'", "did you mean 'hinge'"),
    "loss: {name: quantile, tua: 0.3}": ("line 4", "no option 'tua'", "did you mean 'tau'"),
    "loss: {name: quantile, tau: 1.5}": ("line 4", "loss.tau is 1.5", "> 0 and < 1"),
    "loss: {name: quantile, tau: high}": ("line 4", "loss.tau is 'high'", "a number"),
    "loss: {name: quantile, tau: .nan}": ("line 4", "loss.tau is nan", "a finite number"),
    "loss: [hinge]": ("line 4", "loss is ['hinge']", "a name or"),
    "loss: {tau: 0.3}": ("line 4", "loss has options but no name", "{name: hinge, ...}"),
    "solver: {name: bundel}": ("line 4", "unknown solver 'bundel'", "did you mean 'bundle'"),
    "solver: {name: auto, tolerence: 1}": ("line 4", "no option 'tolerence'", "did you mean 'tolerance'"),
    "solver: {name: auto, tolerance: -1}": ("line 4", "solver.tolerance is -1", ">= 0"),
    "solver: {name: auto, max_iterations: 1.5}": ("line 4", "solver.max_iterations is 1.5", "a whole number"),
    "solver: {name: auto, max_iterations: true}": ("line 4", "solver.max_iterations is True", "a whole number"),
    "solver: {name: auto, time_limit: .inf}": ("line 4", "solver.time_limit is inf", "a finite number"),
    "solver: {name: auto, threads: 0}": ("line 4", "solver.threads is 0", ">= 1"),
    "output: {checkpoint_every: 0}": ("line 4", "output.checkpoint_every is 0", "> 0"),
    "output: 7": ("line 4", "output is 7", "a section"),
    "output: {directory: ''}": ("line 4", "output.directory is ''"),
    "seed: -1": ("line 4", "seed is -1", ">= 0"),
    "seed: true": ("line 4", "seed is True"),
    "seed: 1\nseed: 2": ("line 5", "seed stands there already in line 4"),
    "loss: &a {name: *a}": ("line 4", "a name or"),
    "loss: {name: quantile": ("not YAML",),
    "loss: {name: 'no_such_module:Loss'}": ("line 4", "no_such_module:Loss", "cannot be imported"),
}


@pytest.mark.parametrize("line", WRONG)
def test_one_message_names_the_place_and_what_was_expected(config, line):
    message = refusal(config, MINIMAL + line + "\n")
    for part in ("job.yaml", *WRONG[line]):
        assert part in message
    assert len(message.splitlines()) == 1


DATA = {
    "trian: b": ("unknown field 'data.trian'", "did you mean 'train'"),
    "bias: regularised": ("data.bias is 'regularised'", "did you mean 'regularized'"),
    "scale: yes": ("data.scale is 'yes'", "'unit_norm'"),
    "bias: true": ("data.bias is True", "'free'"),
    "format: svmligth": ("unknown data format 'svmligth'", "did you mean 'svmlight'"),
    "format: {name: csv, lable: 0}": ("no option 'lable'", "did you mean 'label'"),
    "format: {name: svmlight, dtype: float16}": ("data.format.dtype is 'float16'", "one of float64, float32"),
    "format: 7": ("data.format is 7", "a name or"),
    "dimension: 0": ("data.dimension is 0", ">= 1"),
    "dimension: 2.5": ("data.dimension is 2.5", "a whole number"),
    "test: 3": ("data.test is 3", "a path or a list of paths"),
    "validation: []": ("data.validation is []", "a path or a list of paths"),
    "weights: [a]": ("data.weights is ['a']", "text"),
    "positive_label: [1]": ("data.positive_label is [1]", "a label"),
}


@pytest.mark.parametrize("line", DATA)
def test_fields_of_data_too(config, line):
    message = refusal(config, f"schema: 2\nregularizer: {{name: l2, lambda: 1}}\ndata:\n  train: a\n  {line}\n")
    for part in ("job.yaml, line 5", *DATA[line]):
        assert part in message


def test_every_wrong_field_gets_its_line_in_the_order_of_the_file(config):
    message = refusal(config, "schema: 3\ndata: {}\nloss: hing\nregularizer: {lambda: -1}\nsede: 1\n")
    assert [line.partition(":")[0].rsplit(" ", 1)[1] for line in message.splitlines()] == ["1", "2", "3", "4", "5"]
    assert "data.train is missing" in message
    assert "regularizer.lambda is -1" in message


@pytest.mark.parametrize("assignment", ["solver", "=3", "solver..x=1", "loss.name.x=1"])
def test_an_override_that_is_none_is_refused(config, assignment):
    assert refusal(config, MINIMAL, assignment).startswith(f"--set {assignment.partition('=')[0]}")


def test_a_wrong_override_is_named_as_such(config):
    message = refusal(config, MINIMAL, "solver.tolerence=1")
    assert message.startswith("--set solver.tolerence: ")
    assert "did you mean 'tolerance'" in message


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(InputError, match=r"none\.yaml: cannot be read: No such file"):
        load_settings(tmp_path / "none.yaml")
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not a text file"):
        load_settings(binary)


@pytest.mark.parametrize("text", ["", "just words", "- a\n- b\n", "7"])
def test_a_file_that_is_no_config_is_refused(config, text):
    assert "job.yaml" in refusal(config, text)


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused_with_a_message(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("wild") / "c.yaml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(InputError, match=r"c\.yaml"):
        load_settings(path)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.sampled_from(["schema", "data", "loss", "regularizer", "solver", "output", "seed"]), VALUES)
def test_any_value_of_any_field_is_read_or_refused_with_a_message(tmp_path_factory, field, value):
    path = tmp_path_factory.mktemp("wild") / "c.yaml"
    path.write_text(yaml.safe_dump(yaml.safe_load(MINIMAL) | {field: value}))
    settings = message = None
    try:
        settings = load_settings(path)
    except InputError as error:
        message = str(error)
    assert isinstance(settings, Settings) if message is None else "c.yaml" in message


def test_a_matrix_may_stand_in_a_file(tmp_path, monkeypatch):
    from bmrm.app.config.fields import checked

    (tmp_path / "cost.csv").write_text("0, 1\n2.5, 0\n")
    monkeypatch.chdir(tmp_path)
    kind = tuple[tuple[float, ...], ...] | None
    assert checked(kind, "cost.csv") == ((0.0, 1.0), (2.5, 0.0))
    assert checked(kind, [[0, 1], [2, 0]]) == ((0.0, 1.0), (2.0, 0.0))
    with pytest.raises(ValueError, match="No such file"):
        checked(kind, "none.csv")
    (tmp_path / "bad.csv").write_text("0 x\n")
    with pytest.raises(ValueError, match="could not convert"):
        checked(kind, "bad.csv")


def test_the_schema_knows_every_plug_in_and_every_option():
    schema, page = json_schema(), markdown()
    for section, plug_in in PLUG_INS.items():
        shapes = {
            s["properties"]["name"]["const"]: s for s in schema["properties"][section]["anyOf"] if "properties" in s
        }
        for entry in plug_in.registry.all():
            assert f"`{entry.name}`" in page
            assert {"name"} | set(plug_in.extra) <= set(shapes[entry.name]["properties"])
            assert len(shapes[entry.name]["properties"]) == 1 + len(plug_in.extra) + len(entry.parameters)
