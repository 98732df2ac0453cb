"""What a config may not ask for beside `data.guard`: one message each, with its line, before rows are read."""

import numpy as np
import pytest

from bmrm.app.config.config import load_settings
from bmrm.app.guarded import WITHOUT, refuse_guard
from bmrm.app.pipeline.sharing import Sharing
from bmrm.cli import main
from bmrm.data.dataset import Dataset
from bmrm.data.matrix import Csr, features_of
from bmrm.mpi.group import Alone
from bmrm.mpi.guard import Guard, Rounded, refuse_rare
from bmrm.problem import InputError

BASE = ["data.train=part-{rank}.svm", "loss=logistic", "data.guard=true"]


def settings(*changes):
    return load_settings(None, [*BASE, *changes])


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("true", Guard(10, False)),
        ("false", None),
        ("null", None),
        ("{min_rows: 3}", Guard(3, False)),
        ("{secure_sums: true}", Guard(10, True)),
        ("{}", Guard()),
    ],
)
def test_a_guard_is_given_in_short_or_in_full(given, wanted):
    found = settings(f"data.guard={given}").data.guard
    assert Guard.checked(found) == wanted
    assert found == (None if wanted is None else wanted.plain())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("yes please", "data.guard is 'yes please', expected true, false, or such as {min_rows: 10"),
        ("3", "data.guard is 3, expected true, false"),
        ("{min_row: 3}", "data.guard is {'min_row': 3}, expected true, false"),
        ("{min_rows: 1}", "data.guard is {'min_rows': 1}, expected true, false"),
        ("{min_rows: 2.5}", "with min_rows of at least 2"),
        ("{secure_sums: 1}", "or such as {min_rows: 10, secure_sums: false}"),
    ],
)
def test_a_wrong_guard_is_named(given, said):
    with pytest.raises(InputError) as caught:
        settings(f"data.guard={given}")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            "data.test=t.svm",
            "data.test: rows that are measured would gather scores on rank 0, which data.guard forbids",
        ),
        ("data.validation=t.svm", "data.validation: rows that are measured would gather scores"),
        ("output.metrics=[auc]", "output.metrics: measures would gather scores"),
        ("calibrate=sigmoid", "calibrate: calibration would gather scores"),
        ("search={regularizer.lambda: [1, 2], folds: 3}", "search: a search would gather scores"),
        ("data.share_rows=true", "data.share_rows is true, which data.guard forbids"),
        ("data.scale=max_abs", "data.scale: max_abs tells numbers of single rows"),
        ("data.features=polynomial", "data.features is not served beside data.guard"),
        ("loss=null", "loss is null, which would be told by the targets"),
        ("loss=roc_area", "loss roc_area is no sum over rows"),
        ("loss=multilabel_hinge", "loss multilabel_hinge has a threshold"),
        *((f"solver={name}", f"solver {name}: {why}, which data.guard forbids") for name, why in WITHOUT.items()),
        ("solver={name: bundle, cuts_per_pass: 4}", "solver.cuts_per_pass is 4, expected beside data.guard 1"),
        ("solver={name: line_search_bundle, search: exact}", "solver.search is 'exact', expected beside data.guard"),
        ("solver={name: newton, hessian: dense}", "solver.hessian is 'dense', expected beside data.guard cg or auto"),
        ("solver=probe", "solver.dormant is True, expected beside data.guard false"),
    ],
)
def test_what_would_tell_of_rows_is_refused(change, said):
    with pytest.raises(InputError) as caught:
        settings(change)
    message = str(caught.value)
    assert said in message
    assert message.count("\n") == 0
    load_settings(None, [*BASE, "data.guard=null", change])


def test_the_line_is_named(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text("data: {train: a.svm, guard: true}\nloss: logistic\nregularizer: l2\nsolver: pegasos\n")
    with pytest.raises(InputError, match=r"config.yaml, line 4: solver pegasos: it evaluates rows that it chooses"):
        load_settings(path)


@pytest.mark.parametrize("solver", ["auto", "bundle", "lbfgs", "newton", "line_search_bundle", "nonlinear_cg"])
def test_solvers_that_go_by_sums_are_let_be(solver):
    assert settings(f"solver={solver}").data.guard is not None


def test_rows_stay_and_nobody_is_told_to_let_them_move():
    found = Sharing.of(settings().plain())
    assert not found.allowed
    assert "data.guard" in found.in_words()
    assert "share_rows" not in found.in_words()
    assert found.in_words().endswith("no scores on rank 0, so no measures")


@pytest.mark.parametrize("command", ["path", "cv"])
def test_other_commands_are_not_guarded_and_say_so(command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = np.random.default_rng(0).normal(size=(40, 3))
    lines = [f"{1 if x.sum() > 0 else -1} 1:{x[0]:.3f} 2:{x[1]:.3f} 3:{x[2]:.3f}" for x in rows]
    (tmp_path / "a.svm").write_text("\n".join(lines) + "\n")
    (tmp_path / "config.yaml").write_text("data: {train: a.svm, guard: true}\nloss: logistic\nregularizer: l2\n")
    assert main([command, "config.yaml", "--out", "there"]) == 2
    assert "data.guard: " in capsys.readouterr().err


def test_an_owner_who_asks_for_a_guard_refuses_other_commands(monkeypatch):
    monkeypatch.setenv("BMRM_GUARD", "true")
    with pytest.raises(InputError, match=r"asks for data\.guard: .* \(BMRM_GUARD\), but a path is not guarded"):
        refuse_guard(load_settings(None, BASE[:2]).plain(), "a path")


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("touched", "refused"), [(0, False), (4, True), (5, False), (30, False)])
def test_a_feature_that_few_rows_touch_is_refused(sparse, touched, refused):
    X = np.random.default_rng(0).normal(size=(30, 3))
    X[touched:, 1] = 0.0
    data = Dataset.from_arrays(X, np.ones(30))
    if sparse:
        from scipy.sparse import csr_array

        data = Dataset.from_arrays(csr_array(X), np.ones(30))
        assert isinstance(features_of(data.X), Csr)
    if not refused:
        refuse_rare(data, Guard(5))
        return
    with pytest.raises(InputError, match=r"fewer than 5 rows \(min_rows\) touch 1 of 3 features"):
        refuse_rare(data, Guard(5))


def test_rows_of_weight_zero_touch_nothing():
    X = np.random.default_rng(0).normal(size=(30, 3))
    data = Dataset.from_arrays(X, np.ones(30), weights=(np.arange(30) < 4).astype(float))
    with pytest.raises(InputError, match="4 rows, expected none or at least 5"):
        refuse_rare(data, Guard(5))


def test_maxima_tell_no_number_of_a_row():
    found = Rounded(Alone()).max(np.array([0.0, 1.0, 0.3, 5.0, 1e-300]))
    assert found[0] == 0.0
    assert np.all(found >= [0.0, 1.0, 0.3, 5.0, 1e-300])
    assert np.all(np.frexp(found)[0] == [0.0, 0.5, 0.5, 0.5, 0.5])
