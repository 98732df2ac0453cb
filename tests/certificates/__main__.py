"""`python -m tests.certificates --problems 20000 --seed 7`: random problems, every claim checked."""

import argparse
import itertools
import sys
import time

from tests.certificates import problems, watch
from tests.certificates.table import Summary

QUIET = 60.0
"""Seconds between lines that tell how far it is."""


def main(arguments=None):
    """Exit status 1 where a claim was false."""
    options = _parser().parse_args(arguments)
    summary, told = Summary(), time.monotonic()
    for result in watch.results(options.seed, indices(options), options.jobs):
        lines = summary.add(result)
        for line in lines:
            print(f"--seed {options.seed} --problem {result.index}: {line} | {result.title}", flush=True)
        if options.problem is not None and not lines:
            print(f"{result.title}\n{result.outcomes}")
        if time.monotonic() - told > QUIET:
            told = time.monotonic()
            print(f"{summary.problems} problems, {summary.runs} runs, {summary.faulty} with faults", flush=True)
    print(summary.text())
    return 1 if summary.faulty else 0


def indices(options):
    """The numbers of the problems that are asked for."""
    if options.problem is not None:
        return [options.problem]
    everyone = itertools.count(options.first)
    wanted = None if options.only is None else set(options.only.split(","))
    fitting = (k for k in everyone if wanted is None or _has(options.seed, k, wanted))
    return itertools.islice(fitting, options.problems)


def _has(seed, index, wanted):
    """Whether the problem has one of the losses, or one of the solvers."""
    if problems.loss_of(seed, index).name in wanted:
        return True
    return any(run.solver in wanted for run in problems.draw(seed, index).runs)


def _parser():
    parser = argparse.ArgumentParser(prog="python -m tests.certificates", description=__doc__)
    parser.add_argument("--problems", type=int, default=300, help="how many (default 300)")
    parser.add_argument("--seed", type=int, default=0, help="problem K of a seed is always the same (default 0)")
    parser.add_argument("--first", type=int, default=0, help="the number of the first one (default 0)")
    parser.add_argument("--problem", type=int, help="this one alone")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time (default 1)")
    parser.add_argument("--only", help="losses or solvers, separated by commas: problems with one of them")
    return parser


if __name__ == "__main__":
    sys.exit(main())
