"""Fixtures for all tests."""

from pathlib import Path

import pytest

from bmrm.kernels.cache_locks import lock_saves
from bmrm.mpi.launch import NO_MPIRUN, mpirun

lock_saves()  # the processes of pytest-xdist share one cache of compiled kernels


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data sets beside the checkout; the test is skipped where there is none."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("no shared data beside this checkout")
    return folder


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Tests marked `mpi` are skipped, with what to install, where there is no mpirun."""
    if item.get_closest_marker("mpi") and mpirun() is None:
        pytest.skip(NO_MPIRUN)
