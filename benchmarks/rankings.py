"""Quality of rankings on MQ2008: our ranking losses against LightGBM's LambdaRank."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np

from benchmarks.harness import SHARED, Table
from benchmarks.race.peers import not_installed


def measure() -> Table | None:
    """NDCG on the test part; None without data or peer."""
    if not SHARED.is_dir() or not_installed("lightgbm"):
        return None
    from bmrm.data.reading import read

    parts = {name: read(SHARED / f"mq2008.fold1.{name}.svm.xz", features=46) for name in ("train", "vali", "test")}
    rows: list[tuple[object, ...]] = []
    for loss, options in RANKINGS.items():
        begin = time.perf_counter()
        scores = _ours_ranked({"name": loss, **options}, parts)
        label = ", ".join([f"bmrm {loss}", *(f"{key}: {value}" for key, value in options.items())])
        rows.append((f"{label}, lambda by validation", *_figures(parts, scores, time.perf_counter() - begin)))
    rows.append(_lambda_rank(parts))
    return Table(
        "Quality of rankings",
        "MQ2008, fold 1: NDCG at 10 on the test queries. LightGBM's trees are no linear model: quality only.",
        ("trained with", "NDCG@10, test", "seconds"),
        tuple(rows),
    )


def _lambda_rank(parts: dict[str, Any]) -> tuple[object, ...]:
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
    return ("LightGBM LambdaRank, rounds by validation", *_figures(parts, scores, time.perf_counter() - begin))


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
