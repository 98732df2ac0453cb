"""What is no race of solvers: two threads against one, the quality of rankings, and tables of other benchmarks."""

from __future__ import annotations

import importlib
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.harness import SHARED, alternated
from benchmarks.race.peers import not_installed
from benchmarks.race.statistics import ratio
from benchmarks.race.tables import seconds
from bmrm.kernels.workers import usable_cores

Extra = dict[str, Any]
"""title, note, columns, rows: a table of the page."""


def threads(repetitions: int, quick: bool) -> Extra | None:
    """Training on two threads and on one, data of more than 1e7 entries; None on one core."""
    if usable_cores() < 2 or quick:
        return None
    from bmrm.data.reading import read
    from bmrm.losses import LOSSES
    from bmrm.regularizers.l2 import L2
    from bmrm.risk.linear import LinearRisk
    from bmrm.solvers import SOLVERS

    data = read("synthetic:sparse_binary?rows=200000&features=50000&words=90&noise=0.03")
    w, rows = np.full(data.features, 0.01), []

    def passing(loss: str, count: int) -> Callable[[], object]:
        risk = LinearRisk(data, LOSSES.make(loss), threads=count)
        return lambda: risk.value_and_subgradient(w)

    def training(loss: str, count: int) -> Callable[[], object]:
        solver = SOLVERS.make("auto", {"tolerance": 1e-3})
        return lambda: solver.minimize(LinearRisk(data, LOSSES.make(loss), threads=count), L2(1e-4))

    for loss in ("hinge", "logistic"):
        for what, make in (("a pass", passing), ("training to 1e-3", training)):
            times = alternated({"one": make(loss, 1), "two": make(loss, 2)}, repetitions)
            gain = ratio(times["one"].seconds, times["two"].seconds)
            rows.append([f"{loss}, {what}", seconds(times["one"].median), seconds(times["two"].median), gain, 1.8])
    return {
        "title": "Two threads against one",
        "note": f"{data.rows} x {data.features}, {data.nnz} entries, L2 1e-4; one thread's time over that of two.",
        "columns": ["what", "one thread", "two threads", "gain", "target, at least"],
        "rows": rows,
    }


def measurement(name: str, slow: bool = False) -> Callable[[int, bool], Extra | None]:
    """The table of another benchmark, `python -m benchmarks NAME`; left out of quick races where `slow`."""

    def run(repetitions: int, quick: bool) -> Extra | None:
        if slow and quick:
            return None
        found = importlib.import_module(f"benchmarks.{name}").measure()
        if found is None:
            return None
        return {"title": found.title, "note": found.note, "columns": list(found.columns), "rows": found.rows}

    return run


def quality(repetitions: int, quick: bool) -> Extra | None:
    """NDCG on the test part of MQ2008: our ranking losses against LightGBM's LambdaRank; None without data or peer."""
    if not SHARED.is_dir() or not_installed("lightgbm"):
        return None
    from bmrm.data.reading import read

    parts = {name: read(SHARED / f"mq2008.fold1.{name}.svm.xz", features=46) for name in ("train", "vali", "test")}
    rows: list[list[object]] = []
    for loss, options in RANKINGS.items():
        begin = time.perf_counter()
        scores = _ours_ranked({"name": loss, **options}, parts)
        label = ", ".join([f"bmrm {loss}", *(f"{key}: {value}" for key, value in options.items())])
        rows.append([f"{label}, lambda by validation", *_figures(parts, scores, time.perf_counter() - begin)])
    rows.append(_lambda_rank(parts))
    return {
        "title": "Quality of rankings",
        "note": "MQ2008, fold 1: NDCG at 10 on the test queries. LightGBM's trees are no linear model: quality only.",
        "columns": ["trained with", "NDCG@10, test", "seconds"],
        "rows": rows,
    }


def _lambda_rank(parts: dict[str, Any]) -> list[object]:
    """LightGBM with early stopping."""
    import lightgbm

    begin = time.perf_counter()
    dense = {name: (part.X.to_dense(), part.targets) for name, part in parts.items()}  # type: ignore[union-attr]
    sizes = {name: np.unique(targets.groups, return_counts=True)[1] for name, (_, targets) in dense.items()}
    model = lightgbm.LGBMRanker(n_estimators=300, learning_rate=0.05, num_leaves=15, n_jobs=1, verbose=-1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # names of arguments that change between its versions
        model.fit(
            dense["train"][0],
            dense["train"][1].y.astype(int),
            group=sizes["train"],
            eval_set=[(dense["vali"][0], dense["vali"][1].y.astype(int))],
            eval_group=[sizes["vali"]],
            callbacks=[lightgbm.early_stopping(30, verbose=False)],
        )
    scores = model.predict(dense["test"][0])
    return ["LightGBM LambdaRank, rounds by validation", *_figures(parts, scores, time.perf_counter() - begin)]


LAMBDAS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)


RANKINGS: dict[str, dict[str, str]] = {"rank_hinge": {}, "ndcg": {"joint": "pairs"}}
"""Losses and their options."""


def _ours_ranked(loss: dict[str, str], parts: dict[str, Any]) -> Any:
    import bmrm

    best: tuple[float, Any] = (-1.0, None)
    for lam in LAMBDAS:
        train = parts["train"]
        options = {"loss": loss, "regularizer": bmrm.L2(lam), "groups": train.targets.groups, "tolerance": 1e-3}
        model = bmrm.fit(train.X, train.targets.y, **options, time_limit=20.0)
        found = ndcg(parts["vali"].targets, np.asarray(model.decision_function(parts["vali"])))
        best = max(best, (found, model), key=lambda pair: pair[0])
    return np.asarray(best[1].decision_function(parts["test"]))


def _figures(parts: dict[str, Any], scores: Any, taken: float) -> list[object]:
    return [f"{ndcg(parts['test'].targets, np.asarray(scores)):.4f}", f"{taken:.1f}"]


def ndcg(targets: Any, scores: Any, depth: int = 10) -> float:
    """Mean over queries of the discounted gain 2^grade - 1 of the first `depth`, over the best possible one.

    Queries without a grade above 0 are left out; ties go by the order of the rows.
    """
    found = []
    for group in np.unique(targets.groups):
        rows = targets.groups == group
        gain = 2.0 ** targets.y[rows] - 1.0
        discount = 1.0 / np.log2(np.arange(2, min(depth, gain.size) + 2))
        ideal = float(np.sort(gain)[::-1][: discount.size] @ discount)
        if ideal > 0.0:
            order = np.argsort(-scores[rows], kind="stable")
            found.append(float(gain[order][: discount.size] @ discount) / ideal)
    return float(np.mean(found))


EXTRAS: dict[str, Callable[[int, bool], Extra | None]] = {
    "startup": measurement("startup"),
    "threads": threads,
    "a_pass": measurement("a_pass", slow=True),
    "reading": measurement("reading", slow=True),
    "quality": quality,
}
"""By the name that `--extras` takes."""


def plain(extra: Extra) -> Extra:
    """For JSON: cells as text."""
    return {**extra, "rows": [[str(cell) for cell in row] for row in extra["rows"]]}
