"""How much memory there is: the least of what the machine, control groups and limits of the process leave."""

import subprocess
import sys
from pathlib import Path

import pytest

from bmrm.data import memory

MEGABYTE = 1 << 20


@pytest.fixture
def mounted(tmp_path, monkeypatch):
    """Empty folders in place of those of control groups."""
    monkeypatch.setattr(memory, "GROUPS", tmp_path / "groups")
    monkeypatch.setattr(memory, "MOUNTED", tmp_path / "mounted")
    memory._groups.cache_clear()
    yield tmp_path / "mounted"
    memory._groups.cache_clear()


def group(folder, most, taken, dropped, names):
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in zip(names, (most, taken, f"anon 5\n{dropped}"), strict=True):
        (folder / name).write_text(f"{value}\n")


SECOND = "memory.max", "memory.current", "memory.stat"
FIRST = "memory.limit_in_bytes", "memory.usage_in_bytes", "memory.stat"


def test_a_group_around_that_of_the_process_counts_and_pages_of_files_are_free(mounted, tmp_path):
    (tmp_path / "groups").write_text("0::/a/b\n")
    group(mounted / "a" / "b", "max", 7 * MEGABYTE, "inactive_file 0", SECOND)
    group(mounted / "a", 10 * MEGABYTE, 8 * MEGABYTE, f"inactive_file {3 * MEGABYTE}", SECOND)
    assert memory.free_memory() == (5 * MEGABYTE, "a control group")


def test_groups_of_the_first_version(mounted, tmp_path):
    (tmp_path / "groups").write_text("3:cpu,cpuacct:/a\n4:memory:/a/gone\n0::/\n")
    group(mounted / "memory" / "a", 2**63 - 4096, 1, "total_inactive_file 0", FIRST)
    assert memory.free_memory().limit == "the machine"
    group(mounted / "memory", 4 * MEGABYTE, 3 * MEGABYTE, f"total_inactive_file {MEGABYTE // 2}", FIRST)
    memory._groups.cache_clear()
    assert memory.free_memory() == (1.5 * MEGABYTE, "a control group")


def test_a_group_that_takes_more_than_it_may_leaves_nothing(mounted, tmp_path):
    (tmp_path / "groups").write_text("0::/\n")
    group(mounted, 1, 2, "inactive_file 0", SECOND)
    assert memory.available_bytes() == 0


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux alone tells")
@pytest.mark.parametrize(("limit", "words"), [("RLIMIT_DATA", "ulimit -d"), ("RLIMIT_AS", "ulimit -v")])
def test_limits_of_the_process(limit, words):
    text = f"""
import resource
from bmrm.data.memory import free_memory
resource.setrlimit(resource.{limit}, (1500 << 20,) * 2)
before = free_memory()
held = bytearray(300 << 20)
print(before.limit, before.bytes - free_memory().bytes >> 20)
"""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"{words} 300"
