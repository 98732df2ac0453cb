"""Fixtures for all tests."""

import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler.loadfile import LoadFileScheduling

from bmrm.mpi.launch import NO_MPIRUN, mpirun

settings.register_profile("run", deadline=None, max_examples=40)
settings.register_profile("nightly", deadline=None, max_examples=500)
settings.load_profile("run")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data sets beside the checkout; the test is skipped where there is none."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("no shared data beside this checkout")
    return folder


class OneJobAtATime(LoadFileScheduling):
    """Processes share out files, but all of tests/mpi go to one: two jobs at a time would wait for one another."""

    def _split_scope(self, nodeid: str) -> str:
        return "tests/mpi" if nodeid.startswith("tests/mpi/") else super()._split_scope(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> OneJobAtATime:
    """For `--dist loadfile`."""
    return OneJobAtATime(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests over ranks come first, then files with slow tests: at the end nobody waits for a long one."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: (item.path.parent.name != "mpi", item.path not in slow))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Tests marked `mpi` are skipped, with what to install, where there is no mpirun."""
    if item.get_closest_marker("mpi") and mpirun() is None:
        pytest.skip(NO_MPIRUN)


def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Modules that a test wrote and imported go with it: another test may write one of the same name."""
    folder = item.funcargs.get("tmp_path") if hasattr(item, "funcargs") else None
    if folder is None:
        return
    for name, module in list(sys.modules.items()):
        places = [
            getattr(module, "__file__", None) or "",
            *getattr(module, "__path__", []),
        ]  # packages may have no file
        if any(str(place).startswith(f"{folder}/") for place in places):
            del sys.modules[name]
