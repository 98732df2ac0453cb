"""Conversion to a store: part by part it is what reading the whole gives; over ranks, too; in memory for a part."""

import gzip
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bmrm.app.convert import convert
from bmrm.data.digest import digests
from bmrm.data.reading import read
from bmrm.problem import InputError

RANDOM = np.random.default_rng(5)
ROWS = 60
NUMBERS = RANDOM.normal(size=(ROWS, 3)).round(3)
TOWNS = np.array(["Oslo", "Bergen", "Bodø"])[RANDOM.integers(0, 3, ROWS)]
PAY = np.where(NUMBERS[:, 0] > 0, "high", "low")


def csv_text(towns=True, first=0, stop=ROWS):
    lines = ["age,height,town,pay" if towns else "age,height,weight,pay"]
    for i in range(first, stop):
        third = f'"{TOWNS[i]}"' if towns else NUMBERS[i, 2]
        lines.append(f"{NUMBERS[i, 0]},{NUMBERS[i, 1]},{third},{PAY[i]}")
    return "\n".join(lines) + "\n"


def svmlight_text(first, stop):
    lines = (f"{i % 3} 1:{x} {3 + i % 4}:{y}\n" for i, (x, y, _) in enumerate(NUMBERS[first:stop].tolist(), first))
    return "".join(lines)


def parquet(path, first=0, stop=ROWS, towns=True, group=7):
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet as files

    third = TOWNS[first:stop].tolist() if towns else NUMBERS[first:stop, 2]
    columns = {"age": NUMBERS[first:stop, 0], "third": third, "pay": PAY[first:stop].tolist()}
    files.write_table(arrow.table(columns), path, row_group_size=group)


def arrow_file(path):
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import ipc

    table = arrow.table({"age": NUMBERS[:, 0], "town": TOWNS.tolist(), "pay": PAY.tolist()})
    with ipc.new_file(path, table.schema) as file:
        file.write_table(table, max_chunksize=9)


def written(folder, kind):
    """A source of the kind, as a list of names."""
    if kind in ("csv", "csv of numbers"):
        (folder / "a.csv").write_text(csv_text(kind == "csv"))
    elif kind == "csv.gz":
        (folder / "a.csv.gz").write_bytes(gzip.compress(csv_text().encode()))
    elif kind == "svm.gz":
        (folder / "a.svm.gz").write_bytes(gzip.compress(svmlight_text(0, ROWS).encode()))
    elif kind == "svm":
        (folder / "a.svm").write_text(svmlight_text(0, ROWS))
    elif kind == "csv files":
        for k in range(3):
            (folder / f"a{k}.csv").write_text(csv_text(True, 20 * k, 20 * k + 20))
    elif kind in ("parquet", "parquet of numbers"):
        parquet(folder / "a.parquet", towns=kind == "parquet")
    elif kind == "parquet files":
        for k in range(3):
            parquet(folder / f"a{k}.parquet", 20 * k, 20 * k + 20)
    else:
        arrow_file(folder / "a.arrow")
    return sorted(str(path) for path in folder.iterdir())


def same(one, other):
    assert one.X.shape == other.X.shape
    assert one.feature_names == other.feature_names
    assert one.targets.dtype == other.targets.dtype
    assert np.array_equal(one.targets.y, other.targets.y)
    assert digests(one).tolist() == digests(other).tolist()


KINDS = ["csv", "csv of numbers", "csv.gz", "svm.gz", "csv files", "parquet", "parquet of numbers", "parquet files"]


@pytest.mark.parametrize("kind", [*KINDS, "arrow"])
@pytest.mark.parametrize("at_a_time", [200, 1 << 20])
def test_a_store_has_the_rows_of_the_whole_whatever_it_is_cut_into(kind, at_a_time, tmp_path):
    (tmp_path / "in").mkdir()
    source = written(tmp_path / "in", kind)
    found = convert(source, tmp_path / "a.store", at_a_time=at_a_time)
    data = read(source)
    assert (found.rows, found.features, found.entries) == (ROWS, data.features, data.nnz)
    same(read(tmp_path / "a.store"), data)
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith(".")] == []


@pytest.mark.parametrize("kind", ["svm", "parquet", "csv files"])
def test_ranks_write_one_store(kind, tmp_path):
    from bmrm.mpi.launch import needed_mpirun

    (tmp_path / "in").mkdir()
    source, pattern = written(tmp_path / "in", kind), str(tmp_path / "in" / "*")
    words = [needed_mpirun(), "-n", "3", sys.executable, "-m", "bmrm.cli", "convert", pattern, "a.store"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    data = read(source)
    assert done.stdout == f"a.store: {ROWS} rows, {data.features} features, {data.nnz} entries\n"
    same(read(tmp_path / "a.store"), data)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a.store", "in"]


def test_what_one_rank_finds_wrong_all_end_by(tmp_path):
    from bmrm.mpi.launch import needed_mpirun

    (tmp_path / "a.svm").write_text(svmlight_text(0, ROWS) + "1 2:x\n")
    words = [needed_mpirun(), "-n", "2", sys.executable, "-m", "bmrm.cli", "convert", "a.svm", "a.store"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode != 0
    assert done.stderr.count("a.svm, line 61") == 1
    assert [one.name for one in tmp_path.iterdir()] == ["a.svm"]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_column_of_other_files_that_is_missing_is_named(kind, tmp_path):
    if kind == "csv":
        (tmp_path / "a.csv").write_text(csv_text(True))
        (tmp_path / "b.csv").write_text(csv_text(False))
    else:
        parquet(tmp_path / "a.parquet", towns=True)
        arrow = pytest.importorskip("pyarrow")
        from pyarrow import parquet as files

        files.write_table(arrow.table({"age": [1.0], "weight": [2.0], "pay": ["low"]}), tmp_path / "b.parquet")
    source = sorted(str(path) for path in tmp_path.iterdir())
    with pytest.raises(InputError, match="column"):
        convert(source, tmp_path / "a.store")
    assert not (tmp_path / "a.store").exists()


MEASURED = """
import sys
from bmrm.app.convert import convert
convert(sys.argv[1], sys.argv[2])
def own():
    return max(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
before = own()
convert(sys.argv[3], sys.argv[4])
print(own() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux alone tells")
def test_parquet_is_written_in_the_memory_of_its_row_groups(tmp_path):
    """160 MB of numbers in 40 row groups: the peak is a quarter of that, at most, above the one for 8 of them.

    Rows are wide: their targets are in memory.
    """
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet as files

    for name, groups in (("small", 8), ("large", 40)):
        schema = arrow.schema([(f"x{k}", arrow.float64()) for k in range(100)] + [("y", arrow.int64())])
        with files.ParquetWriter(tmp_path / f"{name}.parquet", schema, compression="none") as file:
            for _ in range(groups):
                columns = [*RANDOM.normal(size=(100, 5_000)), RANDOM.integers(0, 2, 5_000)]
                file.write_table(arrow.table(list(map(arrow.array, columns)), schema))
    names = [str(tmp_path / name) for name in ("small.parquet", "s.store", "large.parquet", "l.store")]
    done = subprocess.run([sys.executable, "-c", MEASURED, *names], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 40_000
