"""`bmrm report`: one page that says what a run's files say, whatever stands in them, without network or script."""

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml

from bmrm.app.charts import COLOURS, LETTERS, WIDTH, Axis, Chart, Line, decades, steps
from bmrm.app.html.page import template
from bmrm.cli import main
from tests.browser import browse, wants_browser
from tests.mpi.launch import work

HOSTILE = '<script>alert("x")</script>'


class Page(HTMLParser):
    """The text of a page; fails where elements are not closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.text, self.links = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.open.append(tag)
        self.links += [value for name, value in attrs if name in ("href", "src", "xlink:href", "action")]
        assert not any(name.startswith("on") for name, _ in attrs)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)

    @property
    def words(self):
        return " ".join(" ".join(self.text).split())


def train(folder, name, loss, **settings):
    """A run in `folder/name` on the csv files there."""
    config = {
        "data": {"train": str(folder / "train.csv"), "test": str(folder / "test.csv"), "bias": "free"},
        "loss": loss,
        "regularizer": {"name": "l2", "lambda": 0.01},
        "output": {"directory": str(folder / name)},
    }
    config["data"]["format"] = {"name": "csv", "label": "y"}
    for section, values in settings.items():
        config[section] = config.get(section, {}) | values
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(config))
    return main(["train", str(path), "--quiet"])


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Runs of two losses on data whose names want to be HTML, and one that has no lower bound."""
    folder = tmp_path_factory.mktemp("runs")
    random = np.random.default_rng(3)
    X = random.normal(size=(160, 3)).round(3)
    y = np.where(X @ [1.0, -2.0, 0.5] + random.normal(size=160) > 0, "<b>yes", "no & never")
    lines = [",".join([*map(str, row), f'"{label}"']) for row, label in zip(X, y)]
    head = f'"{HOSTILE.replace(chr(34), chr(34) * 2)}",a < b,c,y'
    (folder / "train.csv").write_text("\n".join([head, *lines[:100]]) + "\n")
    (folder / "test.csv").write_text("\n".join([head, *lines[100:]]) + "\n")
    assert train(folder, "logistic", "logistic") == 0
    assert train(folder, "hinge", "hinge", regularizer={"lambda": 0.1}) == 0
    return folder


def report(out, *folders):
    assert main(["report", *map(str, folders), "--out", str(out)]) == 0
    return Page(Path(out).read_text())


def test_one_run_says_what_its_files_say(runs, tmp_path, capsys):
    page = report(tmp_path / "a.html", runs / "logistic")
    assert capsys.readouterr().out == f"{tmp_path}/a.html\n"
    summary = json.loads((runs / "logistic" / "summary.json").read_text())
    intervals = json.loads((runs / "logistic" / "curves.json").read_text())["intervals"]
    expected = [
        f"The objective of this model is {summary['objective']:.10g}.",
        f"less than {summary['lower_bound']:.10g}",
        "CONVERGED",
        f"{summary['metrics']['test']['auc']:.5g}",
        f"{intervals['accuracy']['low']:.5g} to {intervals['accuracy']['high']:.5g}",
        "100 rows",
        "Judged by the test rows",
        "log(1 + exp(-y f))",
        "Above 0 speaks for no & never, below 0 for <b>yes.",
        *("ROC", "Precision and recall", "Reliability", "Confusion", "Gap by seconds", "numpy"),
    ]
    for words in expected:
        assert words in page.words, words


def test_what_files_hold_stays_text_and_nothing_is_loaded(runs, tmp_path):
    page = report(tmp_path / "a.html", runs / "logistic", runs / "hinge")
    assert HOSTILE in page.words, "the name of a feature is shown"
    assert not {"script", "b", "link", "img", "iframe"} & set(page.tags)
    assert all(link.startswith("#") for link in page.links)
    text = (tmp_path / "a.html").read_text()
    assert "://" not in text
    assert "url(" not in text
    assert """content="default-src 'none';""" in text, "and a browser would refuse to"


def test_several_runs_are_compared_by_what_differs(runs, tmp_path):
    page = report(tmp_path / "a.html", runs / "logistic", runs / "hinge")
    differing = page.words.split("Settings that differ")[1].split("Convergence")[0]
    assert "loss.name logistic hinge" in differing
    assert "regularizer.lambda 0.01 0.1" in differing
    assert "data.bias" not in differing
    assert "output.directory" not in differing, "every run has its own"
    assert "compare their measures, not their objectives" in page.words
    shutil.copytree(runs / "hinge", tmp_path / "deeper" / "hinge")
    page = report(tmp_path / "a.html", runs / "hinge", tmp_path / "deeper" / "hinge")
    assert "deeper/hinge" in page.words, "runs of one name are told apart"
    assert "None: the configs are the same." in page.words
    assert "so that their objectives can be compared" in page.words


def test_the_numbers_of_the_confusion_are_those_of_the_model(runs, tmp_path):
    import bmrm

    model = bmrm.load_model(runs / "hinge" / "model.npz")
    data = model.read(runs / "test.csv", labelled=True)
    predicted, y = model.predict(data), data.targets.y
    found = json.loads((runs / "hinge" / "curves.json").read_text())["curves"]["confusion"]
    by_hand = [[int(np.sum((y == a) & (predicted == b))) for b in found["labels"]] for a in found["labels"]]
    assert found["matrix"] == by_hand
    words = report(tmp_path / "a.html", runs / "hinge").words.split("Confusion")[1]
    for label, row in zip(found["labels"], by_hand):
        assert f"{label} {row[0]} {row[1]}" in words


@pytest.fixture
def copied(runs, tmp_path):
    """A run that may be damaged."""
    shutil.copytree(runs / "logistic", tmp_path / "run")
    return tmp_path / "run"


def cut(path, share=0.5):
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])


def changed(path, **values):
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


DAMAGE = {
    "no such folder": (lambda run: shutil.rmtree(run), "run: no such folder, expected the output folder of a run"),
    "foreign": (
        lambda run: [(run / name).unlink() for name in ("summary.json", "config.yaml")],
        "run: not the output folder of a finished run: it has no summary.json, config.yaml",
    ),
    "no model": (lambda run: (run / "model.npz").unlink(), "model.npz: cannot be read: No such file or directory"),
    "half a model": (lambda run: cut(run / "model.npz"), "model.npz: not a model file: "),
    "half a summary": (lambda run: cut(run / "summary.json"), "summary.json: not JSON, or cut off: "),
    "no numbers": (
        lambda run: changed(run / "summary.json", objective="1"),
        "summary.json: objective is '1', expected a number",
    ),
    "a list": (lambda run: (run / "summary.json").write_text("[]"), "summary.json: expected "),
    "no status": (
        lambda run: (run / "summary.json").write_text("{}"),
        "summary.json: objective is missing",
    ),
    "an infinity": (
        lambda run: (run / "summary.json").write_text('{"objective": Infinity}'),
        "summary.json: not JSON, or cut off: Infinity is no number of JSON",
    ),
    "half a history": (
        lambda run: (run / "history.csv").write_text((run / "history.csv").read_text()[:-60].rsplit(",", 3)[0]),
        "history.csv: not the history of a run: line ",
    ),
    "another table": (
        lambda run: (run / "history.csv").write_text("a,b\n1,2\n"),
        "history.csv: not the history of a run: it has no column iteration",
    ),
    "an empty history": (lambda run: (run / "history.csv").write_text(""), "history.csv: no lines, expected one per "),
    "half a config": (
        lambda run: (run / "config.yaml").write_text("data: {train: a"),
        "config.yaml, line 1: not YAML: ",
    ),
    "another config": (lambda run: (run / "config.yaml").write_text("a: 1\n"), "config.yaml: data is missing"),
    "half of curves": (lambda run: cut(run / "curves.json"), "curves.json: not JSON, or cut off: "),
    "newer curves": (lambda run: changed(run / "curves.json", format=2), "curves.json: format is 2, expected a "),
    "curves of two lengths": (
        lambda run: changed(run / "curves.json", curves={"roc": {"fpr": [0.0, 1.0], "tpr": [0.0]}}),
        "curves.json: curves.roc is {'fpr': [0.0, 1.0], 'tpr': [0.0]}, expected lists of one length",
    ),
    "a ragged matrix": (
        lambda run: changed(run / "curves.json", curves={"confusion": {"labels": ["a", "b"], "matrix": [[1], [1, 2]]}}),
        "expected a row and a column for each label",
    ),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_folder_is_one_message_and_status_2(copied, tmp_path, capsys, damage):
    break_it, words = DAMAGE[damage]
    break_it(copied)
    assert main(["report", str(copied), "--out", str(tmp_path / "a.html")]) == 2
    message = capsys.readouterr().err
    assert message.startswith(f"bmrm: {copied}")
    assert words in message
    assert message.count("\n") == 1
    assert not (tmp_path / "a.html").exists()


def test_a_run_named_twice_and_a_place_that_cannot_be_written(runs, tmp_path, capsys):
    assert main(["report", str(runs / "hinge"), str(runs / "hinge"), "--out", str(tmp_path / "a.html")]) == 2
    assert "a folder is named twice" in capsys.readouterr().err
    assert main(["report", str(runs / "hinge"), "--out", str(tmp_path / "none" / "a.html")]) == 2
    assert "a.html: cannot be written" in capsys.readouterr().err


def test_runs_without_curves_model_or_bound_have_a_page_too(copied, tmp_path):
    (copied / "curves.json").unlink()
    assert "This run has no curves.json" in report(tmp_path / "a.html", copied).words
    (copied / "model.npz").unlink()
    nothing = {"lower_bound": None, "gap": None, "relative_gap": None, "significant_figures": None}
    changed(copied / "summary.json", status="NOT_CONVEX", message="values contradict slopes", **nothing)
    words = report(tmp_path / "a.html", copied).words
    assert "values contradict slopes" in words
    assert "This run has left no model." in words
    assert "Nothing is proved of how much lower it could be" in words


def test_a_search_is_a_table_with_the_training_that_was_kept(runs, tmp_path):
    config = yaml.safe_load((runs / "hinge.yaml").read_text())
    config["data"]["validation"] = config["data"].pop("test")
    config |= {"search": {"name": "f_measure"}, "output": {"directory": str(tmp_path / "run")}}
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(config))
    assert main(["train", str(tmp_path / "job.yaml"), "--quiet"]) == 0
    found = json.loads((tmp_path / "run" / "summary.json").read_text())["search"]
    words = report(tmp_path / "a.html", tmp_path / "run").words
    chosen = found["table"][found["chosen"]]
    assert f"kept {chosen['cost_positive']:.5g} {chosen['cost_negative']:.5g} {chosen['f_beta']:.5g}" in words
    assert f"{len(found['table'])} trainings of the search f_measure, judged on the validation rows." in words
    assert "loss that was kept cost_sensitive_hinge" in words


def test_a_loss_of_the_users_is_named_and_not_imported(copied, tmp_path, monkeypatch):
    (tmp_path / "trap.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    config = yaml.safe_load((copied / "config.yaml").read_text()) | {"loss": {"name": "trap:Loss", "h": 0.5}}
    (copied / "config.yaml").write_text(yaml.safe_dump(config))
    with np.load(copied / "model.npz") as members:
        arrays = dict(members)
    header = json.loads(str(arrays["header"])) | {"loss": {"name": "trap:Loss", "h": 0.5}}
    np.savez(copied / "model.npz", **arrays | {"header": np.array(json.dumps(header))})
    assert "loss trap:Loss (h = 0.5)" in report(tmp_path / "a.html", copied).words


def test_more_runs_than_colours_are_told_apart_by_dashes(copied, tmp_path):
    folders = [tmp_path / f"run{k}" for k in range(8)]
    for folder in folders:
        shutil.copytree(copied, folder)
    report(tmp_path / "a.html", *folders)
    text = (tmp_path / "a.html").read_text()
    assert all(f'class="s{k}"' in text for k in range(6))
    seventh = text.split(f'"s0" color="{COLOURS[0]}"')
    assert any('stroke-dasharray="2 3"' in piece.split("</g>")[0] for piece in seventh)


def test_classes_rankings_and_numbers_have_their_own_curves(tmp_path):
    sources = {
        "softmax": ("sklearn:iris", ["Reliability", "Confusion", "150 rows"]),
        "least_squares": ("sklearn:diabetes", ["Targets by prediction", "442 rows"]),
        "ndcg": ("synthetic:ranking?queries=30", ["NDCG of 30 queries", "30 groups"]),
    }
    for loss, (source, words) in sources.items():
        config = {"data": {"train": source}, "loss": loss, "regularizer": {"name": "l2", "lambda": 0.1}}
        (tmp_path / "job.yaml").write_text(yaml.safe_dump(config | {"output": {"directory": str(tmp_path / loss)}}))
        assert main(["train", str(tmp_path / "job.yaml"), "--quiet", "--set", "solver.tolerance=0.05"]) == 0
        page = report(tmp_path / f"{loss}.html", tmp_path / loss)
        assert all(word in page.words for word in words), loss
        assert "Judged by the training rows" in page.words


@pytest.mark.mpi
def test_the_curves_of_two_ranks_are_those_of_one(runs, tmp_path):
    config = yaml.safe_load((runs / "logistic.yaml").read_text())
    config["output"]["directory"] = str(tmp_path / "shared")
    config["solver"] = {"tolerance": 1e-10}
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(config))
    done = work(2, "bmrm.run", str(tmp_path / "job.yaml"), "--quiet")
    assert done.returncode == 0, done.stderr
    alone = {"output": {"directory": str(tmp_path / "alone")}, "solver": config["solver"]}
    assert train(runs, "exact", "logistic", **alone) == 0
    shared, alone = (json.loads((tmp_path / name / "curves.json").read_text()) for name in ("shared", "alone"))
    assert shared["data"] == alone["data"]
    assert shared["curves"]["confusion"] == alone["curves"]["confusion"]
    assert "accuracy" in shared["intervals"]
    for name, interval in shared["intervals"].items():
        assert interval == pytest.approx(alone["intervals"][name], abs=1e-6), name


def test_text_is_escaped_wherever_it_stands():
    parts, hostile = template("parts.html").module, '<b title="x">&'
    inside = [
        parts.table([hostile, hostile], [[hostile, hostile]], caption=hostile),
        parts.table([hostile], [[hostile]], code=True),
        parts.bars([(hostile, 1.0, hostile)]),
        parts.heated([hostile], [hostile], [[1.0]], hostile, hostile, hostile),
        parts.pairs([(hostile, hostile)]),
        Chart(hostile, [Line(hostile, [1.0], [2.0]), Line("b", [1], [3])], Axis(hostile), Axis(hostile), (1.0, hostile))
        .__html__(),
    ]  # fmt: skip
    for text in inside:
        assert "<b" not in text
        assert hostile in " ".join(Page(text).text)
        assert "b" not in Page(text).tags


def test_ticks_are_round_numbers_inside_the_axis():
    assert steps(0.0, 1.0) == pytest.approx([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
    assert steps(-3.0, 44.0) == pytest.approx([0.0, 10.0, 20.0, 30.0, 40.0])
    assert decades(3e-5, 1.0) == pytest.approx([1e-4, 1e-3, 1e-2, 1e-1, 1.0])
    assert decades(2.0, 9.0) == pytest.approx([2.0, 4.0, 6.0, 8.0])


def test_charts_take_whatever_numbers_there_are():
    nan, inf = float("nan"), float("inf")
    for x, y in (([1.0], [2.0]), ([1, 2], [nan, inf]), ([0, 0], [5, 5]), ([1, 2, 3], [0.0, -1.0, 1e-300]), ([], [])):
        for log in (False, True):
            text = Chart("t", [Line("a", x, y)], Axis("x"), Axis("y", log=log), (0.0, "goal")).svg()
            assert "nan" not in text
            assert "inf" not in text


def test_a_legend_has_the_rows_that_its_names_need():
    def legend(*names):
        lines = [Line(name, [0, 1], [k, k], k) for k, name in enumerate(names)]
        chart = Chart("t", lines, Axis("x"), Axis("y"))
        root = ElementTree.fromstring(chart.svg())
        found = [(float(one.get("x")), float(one.get("y")), one.text) for one in root.iter("text")]
        return float(root.get("height")), [one for one in found if not re.fullmatch(r"[-\d.]+|x|y", one[2])]

    assert legend("alone") == (280.0, [])
    height, ((x, y, _), (x2, y2, _)) = legend("one", "two")
    assert (height, y, y2) == (296.0, 16.0, 16.0)
    assert x < x2
    height, names = legend(*(f"run number {k} of many" for k in range(8)), 30 * "long")
    assert height - 280.0 == max(y for _, y, _ in names) == 16.0 * len({y for _, y, _ in names})
    assert len({(x, y) for x, y, _ in names}) == 9
    assert all(len(text) <= LETTERS and x + 6.5 * len(text) <= WIDTH for x, _, text in names)


@wants_browser
@pytest.mark.parametrize("scheme", [0, 1], ids=["dark", "light"])
@pytest.mark.parametrize("width", [400, 1400])
def test_a_browser_draws_it_and_complains_of_nothing(width, scheme, runs, tmp_path):
    report(tmp_path / "a.html", runs / "logistic", runs / "hinge")
    options = [f"--window-size={width},900", f"--blink-settings=preferredColorScheme={scheme}"]
    browse(f"file://{tmp_path}/a.html", tmp_path / "profile", *options, f"--screenshot={tmp_path}/a.png")
    assert (tmp_path / "a.png").stat().st_size > 10_000


class Tables(HTMLParser):
    """The number of cells of each row of each table."""

    def __init__(self, text):
        super().__init__()
        self.tables = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append(0)
        elif tag in ("td", "th"):
            self.tables[-1][-1] += 1


def test_no_table_is_wider_than_a_page(runs, tmp_path):
    """Of many runs, measures or classes there are several tables, below one another."""
    names = ["accuracy", "auc", "f1", "precision", "recall", "log_loss", "brier", "average_precision"]
    for folder in (runs / "hinge", runs / "logistic"):
        many = [tmp_path / f"{folder.name}-a-rather-long-name-{k}" for k in range(5)]
        for place in many:
            shutil.copytree(folder, place)
            summary = json.loads((place / "summary.json").read_text())
            summary["metrics"]["test"] = {name: 0.25 for name in names}
            (place / "summary.json").write_text(json.dumps(summary))
    folders = [place for place in tmp_path.iterdir() if "long-name" in place.name]
    assert len(folders) == 10
    for k, place in enumerate(folders):
        config = yaml.safe_load((place / "config.yaml").read_text())
        (place / "config.yaml").write_text(yaml.safe_dump(config | {"seed": k}))
    page = report(tmp_path / "many.html", *folders)
    tables = Tables((tmp_path / "many.html").read_text()).tables
    assert max(cells for rows in tables for cells in rows) <= 8
    assert all(len(set(rows)) == 1 for rows in tables), "every row has all columns"
    results = page.words.split("Results")[1].split("Settings that differ")[0]
    assert all(name in results for name in names)
    assert results.count("hinge-a-rather-long-name-0") == results.count("logistic-a-rather-long-name-0") == 3
    differing = page.words.split("Settings that differ")[1].split("Convergence")[0]
    assert all(differing.count(place.name) == 1 for place in folders)


def test_a_matrix_of_many_classes_is_several_below_one_another():
    names = [f"class{k}" for k in range(30)]
    matrix = np.arange(900.0).reshape(30, 30).tolist()
    text = template("parts.html").module.heated(names, names, matrix, "t", "w", "true")
    tables = Tables(text).tables
    assert [max(rows) for rows in tables] == [13, 13, 7]
    assert [len(rows) for rows in tables] == [31, 31, 31]
    assert all(text.count(f">{value}<") == 1 for value in range(30, 900))


@wants_browser
def test_on_paper_folded_sections_are_open(runs, tmp_path):
    report(tmp_path / "a.html", runs / "logistic", runs / "hinge")
    text = (tmp_path / "a.html").read_text()
    assert "details::details-content" in text
    (tmp_path / "folded.html").write_text(text.replace("details::details-content", "details::nothing"))
    pages = {}
    for name in ("a", "folded"):
        browse(f"file://{tmp_path}/{name}.html", tmp_path / "profile", f"--print-to-pdf={tmp_path}/{name}.pdf")
        pages[name] = (tmp_path / f"{name}.pdf").read_bytes().count(b"/Type /Page\n")
    assert pages["folded"] <= 5
    assert pages["a"] >= pages["folded"] + 6, "a run takes three pages and more"
