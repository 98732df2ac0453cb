"""The simulator on histories of which the seconds can be computed by hand, the law on made parts, and the page."""

from __future__ import annotations

import json

import pytest

from benchmarks.__main__ import PAGE, section
from benchmarks.memory import WHOLE
from benchmarks.scaling import KEPT, PROBLEMS, best, table
from benchmarks.simulator import page, replay
from benchmarks.simulator.clusters import Cluster, described
from benchmarks.simulator.law import Network, Parts, law, network
from benchmarks.simulator.recording import Recording, Shape, Step
from benchmarks.simulator.replay import collective, overtaken, predict
from bmrm.problem import InputError

SHAPE = Shape(rows=1000, entries=10_000, dim=100)
STEP = Step(passes=1.0, shared=8.0, alone=0.5, master=0.25, rest=0.125, planes=3, short=2, vectors=2.0, gathered=0)
FREE = Cluster(nodes=64, cores=4, latency=0.0, bandwidth=1e300, memory=1e12)


def of_steps(*steps: Step, **more: object) -> Recording:
    return Recording(problem="made", solver="line_search_bundle", shape=SHAPE, steps=steps, **more)


def test_ranks_share_the_passes_and_nothing_else() -> None:
    recording = of_steps(STEP, STEP)
    for ranks in (1, 2, 4):
        seconds = predict(recording, FREE, ranks).seconds
        expected = {"passes": 16.0 / ranks, replay.LOSS: 1.0 if ranks > 1 else 0.0, "master": 0.5, "vectors": 0.25}
        assert seconds == pytest.approx(dict.fromkeys(replay.PARTS, 0.0) | expected)
    assert predict(recording, FREE, 1).total == recording.seconds - 1.0 == 16.75


def test_what_a_pass_spends_on_weights_is_not_shared() -> None:
    recording = of_steps(STEP, fixed=2.0)
    assert predict(recording, FREE, 4).seconds["passes"] == 2.0 + 6.0 / 4.0
    assert recording.rate == 10_000 / 6.0


def test_messages_along_a_tree() -> None:
    cluster = Cluster(nodes=8, cores=1, latency=0.01, bandwidth=1000.0, memory=1e12)
    assert collective(500.0, 1, cluster) == (0.0, 0.0)
    assert collective(500.0, 2, cluster) == (0.01, 0.5)
    # all bytes at each of three levels would take 1.5 s: parts of them go twice, in six messages one after another
    assert collective(500.0, 8, cluster) == pytest.approx((0.06, 2.0 * 7.0 / 8.0 * 0.5))
    assert collective(1.0, 8, cluster) == pytest.approx((0.03, 0.003))
    assert collective(8.0 * 3 * replay.PIECE, 2, cluster)[0] == pytest.approx(0.03)
    found = predict(of_steps(STEP), cluster, 2).seconds
    assert found["latency"] == pytest.approx(4 * 0.01)
    assert found["bandwidth"] == pytest.approx(2 * 0.512 + 2 * 0.8)


def test_scores_of_all_rows_come_to_rank_0_and_are_dealt_with_there() -> None:
    cluster = FREE.model_copy(update={"bandwidth": 1e6})
    step = STEP._replace(short=0, vectors=0.0, gathered=2000)
    larger = Shape(rows=3000, entries=30_000, dim=100)
    found = predict(of_steps(step, whole_sample=True), cluster, 4, shape=larger).seconds
    assert found[replay.LOSS] == 1.5
    assert found["bandwidth"] == pytest.approx(3.0 * 2000 * 8.0 * 0.75 / 1e6)
    assert predict(of_steps(step), cluster, 4, shape=larger).seconds[replay.LOSS] == 0.5


def test_a_larger_problem_takes_longer_where_it_is_larger() -> None:
    recording = of_steps(STEP, fixed=2.0, bare_master=0.05, bare_rest=0.025)
    found = predict(recording, FREE, 1, shape=Shape(rows=1000, entries=30_000, dim=500)).seconds
    assert found["passes"] == 5.0 * 2.0 + 3.0 * 6.0
    assert found["master"] == pytest.approx(0.05 + 5.0 * 0.2)
    assert found["vectors"] == pytest.approx(0.025 + 5.0 * 0.1)
    sliced = predict(recording, FREE, 10, shape=Shape(rows=1000, entries=30_000, dim=500), slices=True).seconds
    assert sliced["master"] == pytest.approx(0.05 + 5.0 * 0.2 / 10)


def test_threads_and_ranks_of_a_node_share_its_memory() -> None:
    node = Cluster(nodes=1, cores=3, latency=0.0, bandwidth=1e300, memory=1e12, crowding=2.0)
    recording = of_steps(STEP)
    assert predict(recording, node, 1).seconds["passes"] == 8.0
    assert predict(recording, node, 2).seconds["passes"] == 8.0 / 2 * 1.5
    assert predict(recording, node, 1, threads=3).seconds["passes"] == 8.0 / 3 * 2.0
    twice = node.model_copy(update={"entries_per_second": 2.0 * recording.rate})
    assert predict(recording, twice, 1).total == pytest.approx((recording.seconds - STEP.alone) / 2.0)
    with pytest.raises(InputError, match="2 ranks of 2 threads on a node of 3 cores"):
        predict(recording, node, 2, threads=2)


def test_a_large_group_makes_the_other_ranks_wait() -> None:
    sizes = (9_000, *[100] * 10)
    recording = of_steps(STEP, groups=sizes)
    share = recording.largest_share(11)
    assert share == 0.9
    assert predict(recording, FREE, 11).seconds["uneven ranks"] == pytest.approx(8.0 * (0.9 - 1.0 / 11))
    assert of_steps(STEP).largest_share(4) == 0.25
    assert of_steps(STEP).largest_share(3) == 334 / 1000


def test_memory_of_rank_0_has_the_planes_and_of_others_their_rows() -> None:
    found = predict(of_steps(STEP), FREE, 4)
    rows = 12 * 2500 + 24 * 250 + 56 * 250
    assert found.rank_0 == WHOLE + rows + 8 * (3 + 6) * 100 + 40 * 9
    assert found.others == WHOLE + rows + 16 * 100
    sliced = predict(of_steps(STEP), FREE, 4, slices=True)
    assert sliced.rank_0 == sliced.others == WHOLE + rows + 16 * 100 + 8 * (3 + 6) * 25 + 40 * 9


def test_what_binds() -> None:
    slow = Cluster(nodes=64, cores=1, latency=0.0, bandwidth=800.0, memory=2.0 * WHOLE)
    by_ranks = [predict(of_steps(STEP), slow, ranks) for ranks in (1, 2, 4)]
    assert [each.binds for each in by_ranks] == ["passes", "passes", "bandwidth"]
    assert overtaken(by_ranks) is by_ranks[2]
    assert overtaken(by_ranks[:2]) is None
    planes = of_steps(STEP._replace(planes=200_000))
    assert predict(planes, slow, 4).binds == "memory (rank 0)"
    large = Shape(rows=1000, entries=10**9, dim=100)
    assert predict(of_steps(STEP), slow, 4, shape=large).binds == "memory (rows)"


def test_the_law_of_made_parts_is_found_again() -> None:
    latency, byte = 2e-3, 1e-6
    sent = {1: (0, 0), 2: (300, 40_000), 4: (200, 90_000)}
    runs = [
        Parts(n, 1.5, 12.0 / n, messages * latency * (n // 2) + size * byte, messages, size)
        for n, (messages, size) in sent.items()
    ]
    net = network(runs)
    assert (net.latency, net.byte) == pytest.approx((latency, byte))
    found = law(runs[:2], net)
    assert (found.a, found.b, found.c, found.d) == pytest.approx((1.5, 12.0, 0.6, 0.04))
    assert found.seconds(1) == pytest.approx(13.5)
    assert found.seconds(8) == pytest.approx(1.5 + 1.5 + 3 * 0.6 + 0.04)
    assert law(runs[:1], Network(1.0, 1.0)).seconds(64) == pytest.approx(1.5 + 12.0 / 64)


def test_of_some_rounds_the_fastest_run_counts() -> None:
    def rounds(seconds: float, latency: float) -> dict[str, object]:
        runs = {"2": {problem: {"seconds": seconds} for problem in PROBLEMS}}
        recording = of_steps(STEP._replace(rest=seconds)).model_dump(mode="json")
        return {"strong": runs, "weak": runs, "machine": {"latency": latency}, "recordings": {"hinge": recording}}

    found = best([rounds(3.0, 0.1), rounds(2.0, 0.2), rounds(4.0, 0.3)])
    assert found["strong"]["2"]["hinge"] == {"seconds": 2.0}
    assert found["machine"] == {"latency": 0.1}
    assert Recording.model_validate(found["recordings"]["hinge"]).steps == (STEP._replace(rest=2.0),)


def test_described_clusters_have_room_for_their_cases() -> None:
    known = described()
    for case in known.cases.values():
        assert case.cluster in known.clusters
        assert max(case.ranks) <= known.clusters[case.cluster].nodes
        assert known.clusters[case.cluster].source


@pytest.mark.nightly
def test_the_page_and_the_measurements_have_the_kept_figures() -> None:
    found = json.loads(KEPT.read_text())
    assert (page.DOCS / page.PAGE).read_text(encoding="utf-8") == page.text(found)
    assert section("scaling", table(found)) in PAGE.read_text(encoding="utf-8")


@pytest.mark.nightly
def test_objectives_are_the_same_on_every_number_of_ranks() -> None:
    crowds = json.loads(KEPT.read_text())["crowds"]
    assert max(map(int, crowds)) == 64
    for problem in PROBLEMS:
        objectives = [run[problem]["objective"] for run in crowds.values()]
        assert objectives == pytest.approx([objectives[0]] * len(objectives), rel=page.EQUAL)


@pytest.mark.mpi
def test_a_recording_tells_what_two_ranks_send() -> None:
    from tests.mpi.launch import printed

    one = printed(1, "benchmarks.scaling", "record", "400")
    two = printed(2, "benchmarks.scaling", "run", "400", "1")
    for problem in PROBLEMS:
        recording = Recording.model_validate(one[problem])
        assert recording.passes == pytest.approx(two[problem]["passes"], rel=0.1)
        sent = sum(step.short for step in recording.steps) * 512 + 8 * recording.shape.dim * sum(
            step.vectors for step in recording.steps
        )
        assert two[problem]["bytes"] == pytest.approx(sent + 8 * sum(s.gathered for s in recording.steps) / 2, rel=0.2)
