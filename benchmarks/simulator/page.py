"""The page *How it grows*, with its pictures, from the kept figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import Any

from benchmarks.scaling import CROWD_GAP, PROBLEMS, SETTINGS
from benchmarks.simulator.clusters import Case, Cluster, described
from benchmarks.simulator.law import Law, Network, Parts, law, network
from benchmarks.simulator.recording import Recording
from benchmarks.simulator.replay import PARTS, Prediction, overtaken, predict

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE, FIGURES = "scaling.md", "figures/scaling"
WITHIN, EQUAL = 0.15, 1e-9
"""Of a prediction, and of objectives on several numbers of ranks, relative."""
SHOWN = 0.005
"""Share of the time from which a part has a column."""
CHECKED = ("predicted / measured, 1", "predicted / measured, 2")
Figures = Mapping[str, Any]
HEAD = """# How it grows

How much faster are more ranks, where does it end, and what ends it? Measured here on one rank and two; for clusters
predicted, by replaying runs that were recorded on one rank. Written by `python -m benchmarks scaling`.

## On this machine

"""
MEASURED = """Generated texts, {rows:,} rows of {features:,} features, {iterations} iterations: seconds in the solver,
fastest of {runs} runs, and in brackets over those of one rank. Same rows (strong scaling), and rows that grow with the
cores in use (weak scaling, where 1 would be perfect). Rows stay where they are read. `logistic` is solved by `lbfgs`,
`hinge` and `roc_area` by `line_search_bundle`; `roc_area` is a loss of the whole sample, which rank 0 computes from the
scores of all. Machine: {on}.{busy}"""
BUSY = " The load of the machine was {load:.1f} in the five minutes before: if others ran on, times are too long."
IDLE = 0.5
"""Load of the machine, before the runs, up to which that is not said."""
LAW = """
## The law

$$T(n) = a + b/n + c \\log_2 n + e\\, d/B$$

on $n$ ranks: $a$ is what rank 0 does alone, $b$ what ranks share, $c$ the latency of all messages, and the last term
the bytes of weights and gradients of $d$ features over the bandwidth $B$ (none on one rank). $a$ and $b$ are fitted to
the recorded run and to the one on two ranks, latency and bandwidth to the seconds in the messages of all runs on two:
{latency} a message, {bandwidth} MB/s. $n^*$ is the number of ranks where $T$ is least, among powers of two.

"""
CHECK = """
## Predicted from one rank

A run is recorded on one rank: passes, seconds of rank 0 in the rows, in the loss of the whole sample, in the master
and in vectors, the planes, and the messages that it would have sent to others. The simulator divides the seconds in the
rows by the ranks, and adds the messages at the latency and bandwidth that two ranks measure without any problem.
{met} of {all} predictions for the same rows are within {within:.0%} of what was measured.

"""
CROWDS = """
## More ranks than cores

On little data, solved to a gap of {gap:g}: objectives on more ranks, relative to that on one. The largest difference is
{worst:.0e}; at most {equal:g} is asked for{judged}.

"""
CLUSTERS = """
## On clusters

The same replay, on clusters as the papers describe them, one rank with one thread on each node. Problems that are
larger than what was recorded take as many iterations and planes; the seconds of a pass grow with the entries, those of
planes and vectors with the features, messages with the features or the rows. A message to all goes along a tree, or in
parts, whichever is faster. "Binds" is memory where a node has too little, else the part that takes longest. These
figures are computed, not measured: they show where limits are. Rows take 12 bytes an entry, solvers what their formula
says (`bmrm solvers NAME`). Requests are what rank 0 spends on asking the others. Slices are those of planes and of the
solver's vectors, of which each rank would hold its part, in place of rank 0 all.

![Seconds by part against ranks]({picture})

"""
FIRST = """
## What binds first

Memory, where a node has too little; of the time the passes, until something that more ranks do not shorten takes
longer; and what binds at the largest number of ranks.

"""
FIRST_COLUMNS = ("problem", "ranks with enough memory", "passes take longest up to", "then", "at the most ranks")
USAGE = """
## How to run it

<!-- not run: minutes of measuring, on data that the repository does not have -->
```console
$ python -m benchmarks scaling
$ python -m benchmarks.scaling --rows 20000   # fewer rows
$ python -m benchmarks.scaling --page         # the page alone
```

Clusters and problems are described in `benchmarks/simulator/cases.yaml`: nodes, cores and memory of a node, latency and
bandwidth; how fast a core is, and how much slower where all cores of a node compute, where that is known.
"""


@dataclass(frozen=True)
class Check:
    """Predictions for one problem over what was measured, by setting."""

    problem: str
    ratios: Mapping[str, float]

    def cells(self) -> list[str]:
        """On one rank, and on two."""
        return [f"{self.ratios[name]:.2f}" for name in ("1", "2")]


def seconds(run: Figures) -> float:
    """Of a measured run."""
    return float(run["seconds"])


def recording(found: Figures, name: str) -> Recording:
    """That of the name."""
    return Recording.model_validate((found["recordings"] | found["cases"])[name])


def checks(found: Figures) -> list[Check]:
    """Of the same rows, by problem."""
    machine = Cluster.model_validate(found["machine"])
    lines = []
    for problem in PROBLEMS:
        of = recording(found, problem)
        ratios = {
            name: predict(of, machine, ranks, threads=threads).total / seconds(found["strong"][name][problem])
            for name, (ranks, threads) in SETTINGS.items()
        }
        lines.append(Check(problem, ratios))
    return lines


def fitted(found: Figures) -> tuple[Network, dict[str, Law]]:
    """The network, and the law of each problem, from recorded and measured parts."""
    runs = {problem: _parts(found, problem) for problem in PROBLEMS}
    several = [run for of in runs.values() for run in of]
    several += [_measured(found["weak"]["2"][problem]) for problem in PROBLEMS]
    net = network(several)
    return net, {problem: law(of, net) for problem, of in runs.items()}


def _parts(found: Figures, problem: str) -> list[Parts]:
    steps = recording(found, problem).steps
    shared = sum(step.shared for step in steps)
    return [Parts(1, sum(step.seconds for step in steps) - shared, shared), _measured(found["strong"]["2"][problem])]


def _measured(run: Figures) -> Parts:
    """Of a run on two ranks."""
    shared = run["shared"] + run["waiting"]
    serial = max(0.0, run["seconds"] - shared - run["network"])
    return Parts(2, serial, shared, run["network"], run["messages"], run["bytes"])


def simulated(found: Figures) -> dict[str, list[Prediction]]:
    """Predictions of the cases, by recording."""
    lines = {}
    for case in described().cases.values():
        for name in case.recordings:
            cluster = described().clusters[case.cluster]
            lines[name] = [predict(recording(found, name), cluster, ranks, shape=case.shape) for ranks in case.ranks]
    return lines


# -- text ------------------------------------------------------------------------------------------


def write(found: Figures, docs: Path = DOCS) -> None:
    """The page and its pictures."""
    (docs / FIGURES).mkdir(parents=True, exist_ok=True)
    (docs / PAGE).write_text(text(found), encoding="utf-8")
    from benchmarks.simulator import pictures

    pictures.clusters(simulated(found), docs / FIGURES / "clusters.svg")
    pictures.laws(found, docs / FIGURES / "laws.svg")
    print(f"written: {docs / PAGE}")


def text(found: Figures) -> str:
    """The page."""
    return "".join([HEAD, *_here(found), *_law(found), *_check(found), *_crowds(found), *_clusters(found), USAGE])


def busy(found: Figures) -> str:
    """What is to be said of other programs; empty where there were none."""
    return BUSY.format(load=found["load"]) if found["load"] > IDLE else ""


def _here(found: Figures) -> Iterator[str]:
    yield _wrapped(MEASURED.format(busy=busy(found), **found)) + "\n\n"
    lines = []
    for problem in PROBLEMS:
        alone = seconds(found["strong"]["1"][problem])
        cells = [f"{alone:.2f}"]
        for kind, name in (("strong", "2"), ("strong", "1 x 2"), ("weak", "2"), ("weak", "1 x 2")):
            took = seconds(found[kind][name][problem])
            cells.append(f"{took:.2f} ({took / alone:.2f})")
        lines.append([problem, *cells])
    columns = ["one rank", "two ranks", "one, two threads", "two ranks, rows x 2", "one, two threads, rows x 2"]
    yield _table(["loss", *columns], lines)


def _law(found: Figures) -> Iterator[str]:
    net, laws = fitted(found)
    bandwidth = f"{1e-6 / net.byte:,.0f}" if net.byte > 0.0 else "beyond measure,"
    yield LAW.format(latency=_readable(net.latency), bandwidth=bandwidth)
    rows = []
    for problem, of in laws.items():
        best = min((2**k for k in range(13)), key=of.seconds)
        terms = (of.a, of.b, of.c, of.d)
        rows.append([problem, *map(_readable, terms), best, f"{of.seconds(1) / of.seconds(best):.1f}"])
    yield _table(["loss", "a", "b", "c", "e d/B", "n*", "T(1) / T(n*)"], rows)
    yield f"\n![The laws, and what was measured]({FIGURES}/laws.svg)\n"


def _check(found: Figures) -> Iterator[str]:
    lines = checks(found)
    ratios = [check.ratios[name] for check in lines for name in ("1", "2")]
    met = sum(abs(ratio - 1.0) <= WITHIN for ratio in ratios)
    yield CHECK.format(met=met, all=len(ratios), within=WITHIN)
    rows = [[check.problem, *(f"{check.ratios[name]:.2f}" for name in SETTINGS)] for check in lines]
    yield _table(["predicted / measured", "one rank", "two ranks", "one, two threads"], rows)


def _crowds(found: Figures) -> Iterator[str]:
    crowds = found["crowds"]
    off = {
        problem: {
            ranks: abs(runs[problem]["objective"] / crowds["1"][problem]["objective"] - 1.0)
            for ranks, runs in crowds.items()
        }
        for problem in PROBLEMS
    }
    worst = max(max(of.values()) for of in off.values())
    yield CROWDS.format(gap=CROWD_GAP, worst=worst, equal=EQUAL, judged=" and met" if worst <= EQUAL else ", not met")
    ranks = [each for each in crowds if each != "1"]
    rows = [[problem, *(f"{of[each]:.0e}" if of[each] else "0" for each in ranks)] for problem, of in off.items()]
    yield _table(["ranks", *ranks], rows)


def _clusters(found: Figures) -> Iterator[str]:
    yield CLUSTERS.format(picture=f"{FIGURES}/clusters.svg")
    predictions = simulated(found)
    for case in described().cases.values():
        yield from _case(case, found, predictions)
    cases = [(case, name) for case in described().cases.values() for name in case.recordings]
    yield FIRST
    yield _table(FIRST_COLUMNS, [_first(case, name, predictions[name]) for case, name in cases])


def _case(case: Case, found: Figures, predictions: Mapping[str, Sequence[Prediction]]) -> Iterator[str]:
    cluster = described().clusters[case.cluster]
    yield f"### {case.title}\n\n{_wrapped(case.about)}\n\n{_wrapped(f'The cluster: {cluster.source}')}\n"
    for name in case.recordings:
        of, by_ranks = recording(found, name), predictions[name]
        shape = case.shape or of.shape
        yield f"\n{_words(of, name)}; {shape.rows:,} rows, {shape.entries:,} entries, {shape.dim:,} weights:\n\n"
        parts = [part for part in PARTS if any(each.seconds[part] >= SHOWN * each.total for each in by_ranks)]
        columns, rows = ["ranks", "seconds", *parts, "rank 0, GB", "others, GB", "binds"], []
        for each in by_ranks:
            rows.append(_line(each, parts))
        if case.shape is not None and can_slice(of.solver):
            columns.append("rank 0 with slices, GB")
            for row, each in zip(rows, by_ranks):
                sliced = predict(of, cluster, each.ranks, shape=shape, slices=True)
                row.append(f"{sliced.rank_0 / 1e9:.1f}")
        yield _table(columns, rows)
    yield "\n"


def _wrapped(text: str) -> str:
    return fill(text, 120, break_on_hyphens=False, break_long_words=False)


def can_slice(solver: str) -> bool:
    """Whether ranks may hold slices of its planes and vectors."""
    from bmrm.solvers import SOLVERS

    return bool(SOLVERS.get(solver).cls.sliced)  # type: ignore[attr-defined]


def _words(of: Recording, name: str) -> str:
    planes = f", {of.planes} planes at most" if of.planes else ""
    return (
        f"{name.replace('kdd_', '')} by `{of.solver}`: {len(of.steps) - 1} iterations, {of.passes:.0f} passes{planes}"
    )


def _line(each: Prediction, parts: Sequence[str]) -> list[str]:
    shares = [f"{each.seconds[part] / each.total:.0%}" for part in parts]
    memory = [f"{size / 1e9:.1f}" for size in (each.rank_0, each.others)]
    return [f"{each.ranks:,}", _figures(each.total), *shares, *memory, each.binds]


def _first(case: Case, name: str, predictions: Sequence[Prediction]) -> list[str]:
    title = f"{case.title}, {name.replace('kdd_', '')}" if len(case.recordings) > 1 else case.title
    enough = next((f"from {each.ranks:,}" for each in predictions if each.fits), f"more than {predictions[-1].ranks:,}")
    late = overtaken(predictions)
    before = [each.ranks for each in predictions if late is None or each.ranks < late.ranks]
    led = f"{before[-1]:,}" if before else "-"
    most = predictions[-1]
    return [title, enough, led, late.slowest if late else "-", f"{most.binds} ({most.ranks:,})"]


def _figures(number: float) -> str:
    """Three digits of it, without an exponent."""
    rounded = float(f"{number:.3g}")
    return f"{rounded:,.0f}" if rounded >= 100.0 else f"{rounded:g}"


def _readable(took: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if took >= scale:
            return f"{took / scale:.3g} {unit}"
    return f"{took / 1e-6:.3g} us"


def _table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    return "\n".join([*lines, *("| " + " | ".join(map(str, row)) + " |" for row in rows), ""])
