"""What READMEs of the examples say of 1, 2 and 4 ranks: there for all, and as the examples print it now."""

import json

import pytest

from mpi_examples import outputs
from mpi_examples.outputs import COLUMNS, HERE, RANKS, TIMES, between_marks, markdown, put, ranks_of, row_of, rows_in

EXAMPLES = sorted({path.parent.name for path in (*HERE.glob("*/config.yaml"), *HERE.glob("*/run.py"))})
MOST_PASSES = 10.0
"""Times the passes of one rank: another solver may be chosen over ranks, but visits of rows are no passes."""
BUNDLED = ("breast_cancer", "digits")
"""Those whose data every installation has."""


def kept(name):
    text = between_marks((HERE / name / "README.md").read_text(), name)
    assert text is not None, f"python -m mpi_examples.outputs {name}"
    return rows_in(text)


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_readme_has_the_output_on_all_numbers_of_ranks(name):
    rows, ranks = kept(name), ranks_of(name)
    assert rows
    assert [int(row["ranks"].partition(",")[0]) for row in rows] == [*ranks] * (len(rows) // len(ranks))
    for first in range(0, len(rows), len(ranks)):
        runs = [row for row in rows[first : first + len(ranks)] if "status" in row]
        assert {row["status"] for row in runs} <= {"CONVERGED"}
        for run in runs[1:]:  # every bound holds for every objective, but for rounding
            for one, other in ((run, runs[0]), (runs[0], run)):
                bound, objective = float(one["lower bound"]), float(other["objective"])
                assert bound <= objective + 1e-5 * abs(objective)
            assert float(run["passes"]) <= MOST_PASSES * float(runs[0]["passes"])


@pytest.mark.mpi
@pytest.mark.nightly
@pytest.mark.parametrize("name", BUNDLED)
def test_readmes_are_in_step_with_what_the_examples_print(name):
    now = rows_in(outputs.section(name, RANKS[:2]))
    for row, before in zip(now, kept(name)[:2], strict=True):
        assert list(row) == list(before)
        assert row["status"] == before["status"]
        gap = max(float(row["relative gap"]), float(before["relative gap"]))
        for column in ("objective", "lower bound"):
            assert float(row[column]) == pytest.approx(float(before[column]), rel=gap + 1e-5)
        measures, earlier = ([one.split() for one in each["measures"].split(", ")] for each in (row, before))
        assert [name for name, _ in measures] == [name for name, _ in earlier]
        assert [float(x) for _, x in measures] == pytest.approx([float(x) for _, x in earlier], abs=0.01)


def test_a_section_is_put_at_the_end_once_and_replaced_afterwards(tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text("# one\n\nText.\n")
    parts = dict.fromkeys(("risk", "master", "waiting", "network", "solver"), 0.25)
    summary = {
        "ranks": 2,
        "threads": 1,
        "status": "CONVERGED",
        "objective": 0.5,
        "lower_bound": 0.499,
        "relative_gap": 2e-3,
        "passes": 7.0,
        "seconds": parts,
        "metrics": {"train": {"auc": 0.9}, "test": {"auc": 0.8}},
    }
    for wall in (3.0, 4.0):
        put(readme, "one", markdown(COLUMNS, [row_of(summary, wall)]))
    text = readme.read_text()
    assert text.startswith("# one\n\nText.\n\n## On 1, 2 and 4 ranks\n")
    (row,) = rows_in(between_marks(text, "one"))
    assert json.loads(row["objective"]) == 0.5
    assert {row[column] for column in TIMES} == {"4.0", "1.25"}
    assert (row["ranks"], row["measures"]) == ("2, one thread each", "auc 0.8")
