"""The svmlight reader against scikit-learn's loader, Python's float, itself in parts, and bad input."""

import bz2
import gzip
import io
import lzma
import math
import random
import struct
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file

import bmrm.data.readers.svmlight as module
from bmrm.data.readers._core.raw import join
from bmrm.data.readers.svmlight import Svmlight, read_svmlight
from bmrm.problem import InputError


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return tmp_path_factory.mktemp("svmlight") / "rows.svm"


def rows_of(data):
    """Per row: label or labels, group, columns, bits of the values."""
    X, t = data.X, data.targets
    values = np.ones(X.indices.shape[0]) if X.values is None else X.values
    out = []
    for k in range(data.rows):
        span = slice(X.indptr[k], X.indptr[k + 1])
        y = t.y[k] if isinstance(t.y, np.ndarray) else tuple(t.y.labels[t.y.indptr[k] : t.y.indptr[k + 1]])
        group = None if t.groups is None else int(t.groups[k])
        out.append(
            (
                y,
                group,
                list(zip(X.indices[span].tolist(), values[span].tobytes().hex(), strict=False)),
                values[span].tobytes(),
            )
        )
    return out


def theirs(text, multilabel=False, dtype=np.float64, zero_based="auto"):
    return load_svmlight_file(
        io.BytesIO(text), multilabel=multilabel, dtype=dtype, zero_based=zero_based, query_id=True
    )


def same_as_theirs(file, text, multilabel, dtype, one_based):
    file.write_bytes(text)
    if b"\n" not in text and b"\r" in text[:-1]:
        text = text.replace(b"\r", b"\n")  # without LF, CR ends lines here, while scikit-learn takes it for a blank
    try:
        with np.errstate(all="ignore"):
            X, y, groups = theirs(text, multilabel, dtype, "auto" if one_based is None else not one_based)
    except (ValueError, OverflowError, IndexError) as error:
        with pytest.raises(InputError, match=r"rows\.svm"):
            read_svmlight(file, multilabel=multilabel, dtype=np.dtype(dtype).name, one_based=one_based)
        return type(error)
    numbers = [*X.data, *(label for row in y for label in row)] if multilabel else [*X.data, *y]
    if b"_" in text or not np.all(np.isfinite(numbers)) or X.shape[0] == 0:
        event = "outside the comparison"
        try:
            data = read_svmlight(file, multilabel=multilabel, dtype=np.dtype(dtype).name, one_based=one_based)
        except InputError:
            return event
        assert np.all(np.isfinite(numbers))
        assert X.shape[0] > 0
    else:
        try:
            data = read_svmlight(file, multilabel=multilabel, dtype=np.dtype(dtype).name, one_based=one_based)
        except InputError as error:  # whole numbers; with a point they are those of a regression
            if "expected integers of 64 bits" not in str(error) or max(map(abs, numbers)) < 2.0**63:
                raise
            return "whole labels of more than 64 bits"
    ours = data.X.to_scipy()
    assert ours.shape == X.shape
    np.testing.assert_array_equal(ours.indptr, X.indptr)
    np.testing.assert_array_equal(ours.indices, X.indices)
    assert ours.data.astype(dtype).tobytes() == X.data.tobytes()
    assert data.X.values is None or data.X.dtype == dtype
    if multilabel:
        assert [tuple(row) for row in data.targets.y] == [tuple(sorted(set(row))) for row in y]
    else:
        assert data.targets.y.astype(np.float64).tobytes() == y.tobytes()
    if len(groups) == X.shape[0]:
        np.testing.assert_array_equal(data.targets.groups, groups)
    else:
        assert data.targets.groups is None
    return "equal"


digits = st.text("0123456789", max_size=25)
decimals = st.builds(
    "{}{}{}{}{}".format,
    st.sampled_from(["", "", "", "+", "-", "--"]),
    digits,
    st.sampled_from(["", "", ".", ".."]),
    digits,
    st.sampled_from(["", "", "", "e5", "E-7", "e+12", "e", "e-", "e400", "e-400", "e1.5", "e00003"]),
)
numbers = st.one_of(
    st.integers(-20, 20).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    decimals,
    st.sampled_from(
        ["nan", "inf", "-Infinity", "1_0", "0x10", "1,5", "", "abc", "٣", "1\x00", "1d5", "-0", "+.5", "5."]
    ),
)
indices = st.one_of(
    st.integers(0, 30).map(str),
    st.sampled_from(
        ["0", "00", "-0", "+3", "-1", "007", "1_1", "2147483647", "2147483648", "99999999999999999999", "a", "", "1.0"]
    ),
)
blanks = st.sampled_from([" ", " ", " ", "  ", "\t", "\x0b", "\x0c", "\r", " \t "])
groups = st.one_of(
    st.integers(-5, 5).map("qid:{}".format),
    st.sampled_from(
        [
            "qid:",
            "qid",
            "qid:x",
            "qidx:3",
            "qid:+7",
            "qid:1.0",
            "qid:9223372036854775808",
            "qid:-9223372036854775808",
            "QID:1",
            "qid:1:2",
            "q:1",
        ]
    ),
)


@st.composite
def lines(draw, wild):
    """A line, well-formed unless `wild`."""
    if not wild:
        label = draw(st.integers(-3, 3).map(str) | st.floats(-5, 5).map(repr))
        columns = sorted(draw(st.sets(st.integers(1, 60), max_size=8)))
        values = [draw(st.floats(allow_nan=False, allow_infinity=False).map(repr) | st.just("1")) for _ in columns]
        tokens = [label, *(f"{c}:{v}" for c, v in zip(columns, values, strict=True))]
    else:
        tokens = [draw(numbers) if draw(st.booleans()) else ",".join(draw(st.lists(numbers, min_size=1, max_size=3)))]
        if draw(st.booleans()):
            tokens.append(draw(groups))
        pairs = draw(st.lists(st.tuples(indices, numbers), max_size=4))
        if draw(st.booleans()):
            pairs.sort(key=lambda pair: (len(pair[0]), pair[0]))
        tokens += [f"{index}:{value}" for index, value in pairs]
    text = draw(blanks) if draw(st.integers(0, 9)) == 0 else ""
    for token in tokens:
        text += token + draw(blanks)
    if draw(st.integers(0, 4)) == 0:
        text += "#" + draw(st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=5))
    return text


@st.composite
def texts(draw):
    body = draw(st.lists(lines(draw(st.booleans())), min_size=0, max_size=5))
    ends = [draw(st.sampled_from(["\n", "\n", "\r\n", "\n\n", "\n# note\n", "\n \t\n"])) for _ in body]
    text = bytearray("".join(line + end for line, end in zip(body, ends, strict=True)).encode())
    if text and draw(st.booleans()):
        text = text.rstrip(b"\n")
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):  # mutations of single bytes
        if text:
            at = draw(st.integers(0, len(text) - 1))
            text[at : at + draw(st.integers(0, 1))] = draw(
                st.sampled_from([b"", b":", b" ", b"\n", b"#", b",", b"-", b"9", b".", b"e", b"q", b"\xff", b"\r"])
            )
    return bytes(text)


@settings(suppress_health_check=list(HealthCheck))
@given(
    text=texts(), multilabel=st.booleans(), single=st.booleans(), one_based=st.sampled_from([None, None, True, False])
)
@example(text=b"1 qid:3 1:1\n", multilabel=False, single=False, one_based=None)
@example(text=b"# only\n", multilabel=False, single=False, one_based=None)
@example(text=b"1\n2\n", multilabel=False, single=False, one_based=None)
@example(text=b"1 0:5\n", multilabel=False, single=False, one_based=True)
@example(text=b"1:5 2:3\n\n3,1,1 7:1\n", multilabel=True, single=False, one_based=None)
@example(text=b"qid:4 1:5\n", multilabel=True, single=False, one_based=None)
@example(text=b"1 1:1e39\n", multilabel=False, single=True, one_based=None)
@example(text=b"1 1:3.4028235677973366e38\n", multilabel=False, single=True, one_based=None)
@example(text=b"1 1:3.4028235e38\n", multilabel=False, single=True, one_based=None)
@example(text=b"1 2147483647:1\n", multilabel=False, single=False, one_based=False)
@example(text=b"1 qid:1 1:1\n2 1:1\n", multilabel=False, single=False, one_based=None)
def test_the_same_values_or_both_refuse(file, text, multilabel, single, one_based):
    same_as_theirs(file, text, multilabel, np.float32 if single else np.float64, one_based)


def test_comparison_reaches_both_outcomes(file):
    assert same_as_theirs(file, b"1 3:2.5 7:1e-3\n", False, np.float64, None) == "equal"
    assert same_as_theirs(file, b"1 3:2.5 3:1\n", False, np.float64, None) is ValueError
    assert same_as_theirs(file, b"1 3:inf\n", False, np.float64, None) == "outside the comparison"


@pytest.mark.parametrize("block", [1, 7, 64])
def test_small_blocks_read_the_same(file, monkeypatch, block):
    rng = random.Random(block)
    text = "".join(
        f"{rng.randint(-3, 3)} " + " ".join(f"{k}:{rng.uniform(-1, 1)!r}" for k in range(1, rng.randint(1, 30))) + "\n"
        for _ in range(40)
    )
    file.write_text(text)
    whole = rows_of(read_svmlight(file))
    monkeypatch.setattr(module, "BLOCK", block)
    assert rows_of(read_svmlight(file)) == whole


def parts_joined(file, parts, **options):
    raws = [Svmlight(**options).scan(file, part, parts) for part in range(parts)]
    extent = np.max([raw.extent for raw in raws], axis=0)
    return join([raw for raw in raws if raw.data.rows], "parts").data, [raw.dataset(extent) for raw in raws]


@pytest.mark.parametrize("end", ["", "\n"])
def test_parts_of_every_number_are_the_whole(file, end):
    text = "-1 3:2 5:1\n+1\n\n# note 1:1\n1 1:0.5 # c\n2 7:1e3\r\n3 4:4" + end
    file.write_text(text, newline="")
    whole = read_svmlight(file)
    for parts in range(1, len(text) + 3):  # at the end every byte begins a part
        joined, datasets = parts_joined(file, parts)
        assert sum(data.rows for data in datasets) == whole.rows
        assert {data.features for data in datasets} == {whole.features}
        rows = [row for data in datasets for row in rows_of(data)]
        assert rows == rows_of(whole)
        assert joined.rows == whole.rows


def test_groups_are_never_parted(file):
    rng = random.Random(3)
    qids = [q for q in range(12) for _ in range(rng.randint(1, 5))]
    text = "".join(f"{rng.randint(0, 2)} qid:{q} 1:{rng.random()!r}\n" + "# note\n" * rng.randint(0, 1) for q in qids)
    file.write_text(text)
    packed = file.with_suffix(".xz")
    packed.write_bytes(lzma.compress(text.encode()))
    for path in (file, packed):
        for parts in range(1, 40):
            found = [Svmlight().scan(path, part, parts).data.targets.groups for part in range(parts)]
            found = [list(groups) for groups in found if groups is not None and len(groups)]
            assert [q for groups in found for q in groups] == qids
            assert all(left[-1] != right[0] for left, right in pairwise(found))


@pytest.mark.parametrize(("pack", "suffix"), [(gzip.compress, ".gz"), (bz2.compress, ".bz2"), (lzma.compress, ".xz")])
def test_packed_files(tmp_path, pack, suffix):
    text = b"".join(b"%d %d:1 %d:2.5\n" % (k, k + 1, k + 9) for k in range(500))
    plain, packed, unnamed = tmp_path / "a.svm", tmp_path / f"a.svm{suffix}", tmp_path / "noname"
    plain.write_bytes(text)
    packed.write_bytes(pack(text))
    unnamed.write_bytes(pack(text))
    expected = rows_of(read_svmlight(plain))
    assert rows_of(read_svmlight(packed)) == rows_of(read_svmlight(unnamed)) == expected
    for parts in (2, 5):
        assert [row for data in parts_joined(packed, parts)[1] for row in rows_of(data)] == expected
    packed.write_bytes(pack(text)[:-20])
    with pytest.raises(InputError, match=r"a\.svm.*truncated or damaged"):
        read_svmlight(packed)
    packed.write_bytes(pack(text)[:8] + b"\xff\x00\xff" * 9)
    with pytest.raises(InputError, match=r"a\.svm.*damaged"):
        read_svmlight(packed)
    packed.write_bytes(text)
    with pytest.raises(InputError, match="but the content is not"):
        read_svmlight(packed)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1 3:x", "value of index 3 is 'x', expected a finite number"),
        ("1 3:nan", "value of index 3 is 'nan', expected a finite number"),
        ("1 3:-inf", "value of index 3 is '-inf'"),
        ("1 3:1e999", "value of index 3 is '1e999'"),
        ("1 3:1_000", "value of index 3 is '1_000'"),
        ("nan 3:1", "label is 'nan', expected a finite number"),
        ("a 3:1", "label is 'a'"),
        ("1,2 3:1", "several labels need multilabel"),
        ("1 5:1 3:1", "index 3 after 5, expected rising indices"),
        ("1 5:1 5:1", "index 5 after 5, expected rising indices"),
        ("1 -4:1", "index -4, expected indices from 0"),
        ("1 4", "'4', expected index:value"),
        ("1 :4", "index '', expected an integer"),
        ("1 4:", "value of index 4 is ''"),
        ("1 1.5:4", "index '1.5', expected an integer"),
        ("1 2147483648:4", "index 2147483648, expected at most 2147483647"),
        ("1 qid:x 3:4", "qid 'x', expected an integer"),
        ("1 qid 3:4", "'qid', expected qid:integer or index:value"),
        ("1 3:4 qid:1", "index 'qid', expected an integer"),
        ("1 qid:99999999999999999999 3:4", "expected a 64-bit integer"),
        ("1 " + "x" * 99, "xxx...', expected index:value"),
    ],
)
def test_errors_name_file_and_line_wherever_the_part_starts(tmp_path, monkeypatch, line, message):
    monkeypatch.setattr(module, "BLOCK", 64)
    good = "1 2:1.5\n\n# note\n"
    text = good * 40 + line + "\n" + good * 40
    plain, packed = tmp_path / "rows.svm", tmp_path / "rows.svm.gz"
    plain.write_text(text)
    packed.write_bytes(gzip.compress(text.encode()))
    for path in (plain, packed):
        for parts in (1, 2, 5):
            failures = []
            for part in range(parts):
                try:
                    Svmlight().scan(path, part, parts)
                except InputError as error:
                    failures.append(str(error))
            assert len(failures) == (1 if path is plain else parts)
            assert failures[0].startswith(f"{path}, line 121: ")
            assert message in failures[0]


def test_index_zero_in_a_one_based_file(file):
    file.write_text("1 1:1\n1 0:1\n")
    with pytest.raises(InputError, match="line 2: index 0, expected indices from 1"):
        read_svmlight(file, one_based=True)
    assert read_svmlight(file).features == 2
    file.write_text("1 1:1\n")
    assert read_svmlight(file).features == 1
    assert read_svmlight(file, one_based=False).features == 2


def test_number_of_features(file):
    file.write_text("1 1:1 7:1\n")
    assert read_svmlight(file, features=9).X.shape == (1, 9)
    with pytest.raises(InputError, match=r"rows\.svm: 7 features, expected at most 6"):
        read_svmlight(file, features=6)
    with pytest.raises(InputError, match="state features and one_based"):
        read_svmlight(file, part=0, parts=2)
    assert read_svmlight(file, part=0, parts=2, features=8, one_based=True).features == 8


@pytest.mark.parametrize("content", ["", "\n", "# only a comment\n \t\n"])
def test_files_without_rows(tmp_path, content):
    path = tmp_path / "none.svm"
    path.write_text(content)
    for parts in (1, 3):
        for part in range(parts):
            with pytest.raises(InputError, match=r"none\.svm: the file (is empty|has no rows)"):
                Svmlight().scan(path, part, parts)


def test_a_part_without_rows_is_fine(file):
    file.write_text("1 1:1\n")
    assert sum(Svmlight().scan(file, part, 4).data.rows for part in range(4)) == 1


def test_unreadable_files(tmp_path):
    with pytest.raises(InputError, match=r"gone\.svm: No such file"):
        read_svmlight(tmp_path / "gone.svm")
    with pytest.raises(InputError, match="directory"):
        read_svmlight(tmp_path)


def test_only_ones_have_no_values_and_groups_need_every_row(file):
    file.write_text("1 qid:2 3:1 4:1.0\n0 qid:2 1:10e-1 2:+1\n")
    data = read_svmlight(file)
    assert data.X.values is None
    np.testing.assert_array_equal(data.targets.groups, [2, 2])
    file.write_text("1 qid:2 3:1\n0 3:2\n")
    data = read_svmlight(file)
    assert data.targets.groups is None
    np.testing.assert_array_equal(data.X.values, [1, 2])


def test_a_line_longer_than_a_block(file, monkeypatch):
    monkeypatch.setattr(module, "BLOCK", 16)
    file.write_text("1 " + " ".join(f"{k}:{k}" for k in range(1, 400)))
    np.testing.assert_array_equal(read_svmlight(file).X.values, np.arange(1, 400))


@pytest.mark.shared_data
@pytest.mark.parametrize("name", ["a9a", "mq2008.fold1.test", "farm-ads", "rcv1_small.train", "usps.test", "space_ga"])
def test_real_files(shared_data, name):
    path = shared_data / f"{name}.svm.xz"
    X, y, groups = theirs(lzma.decompress(path.read_bytes()))
    data = read_svmlight(path)
    ours = data.X.to_scipy()
    np.testing.assert_array_equal(ours.indices, X.indices)
    np.testing.assert_array_equal(ours.indptr, X.indptr)
    assert ours.data.tobytes() == X.data.tobytes()
    assert data.targets.y.tobytes() == y.tobytes()
    assert (data.targets.groups is None) == (len(groups) == 0)
    if len(groups):
        np.testing.assert_array_equal(data.targets.groups, groups)


@pytest.mark.shared_data
def test_real_multilabel_file(shared_data):
    path = shared_data / "yeast.test.svm.xz"
    _, y, _ = theirs(lzma.decompress(path.read_bytes()), multilabel=True)
    assert [tuple(row) for row in read_svmlight(path, multilabel=True).targets.y] == y


def test_written_and_read_floats_have_the_same_bits(file):
    rng = random.Random(5)
    values = []
    while len(values) < 5000:
        value = struct.unpack("d", struct.pack("Q", rng.getrandbits(64)))[0]
        values += [value] if math.isfinite(value) and value != 0 else []
    file.write_text("".join(f"1 1:{value!r}\n" for value in values))
    assert read_svmlight(file).X.values.tobytes() == np.array(values).tobytes()


@pytest.mark.parametrize("label", ["9223372036854775808", "-9223372036854775809", "+99999999999999999999"])
def test_integers_beyond_64_bits_are_no_labels(file, label):
    for text, multilabel in ((f"1 1:2\n{label} 1:3\n", False), (f"1,3 1:2\n1,{label} 1:3\n", True)):
        file.write_text(text)
        with pytest.raises(InputError, match=r"line 2: label '.*', expected integers of 64 bits"):
            read_svmlight(file, multilabel=multilabel)
    file.write_text("9223372036854775807 1:1\n9223372036854775806 1:1\n-9223372036854775808 1:1\n")
    assert read_svmlight(file).targets.y.tolist() == [2**63 - 1, 2**63 - 2, -(2**63)]
    file.write_text("1e20 1:1\n99999999999999999999.0 1:1\n")
    assert read_svmlight(file).targets.y.tolist() == [1e20, 1e20]


def test_a_mark_is_no_part_of_the_first_label(file):
    file.write_bytes(b"\xef\xbb\xbf1 qid:1 1:2\n-1 qid:1 1:3\n2 qid:2 1:1\n3 qid:3 1:4\n")
    for parts in range(1, 6):
        raws = [Svmlight().scan(file, part, parts) for part in range(parts)]
        raw = join([raw for raw in raws if raw.data.rows], "all")
        assert raw.data.targets.y.tolist() == [1, -1, 2, 3]
        assert raw.data.targets.groups.tolist() == [1, 1, 2, 3]
    file.write_bytes(b"\xef\xbb\xbf\n1 1:2\n1 1:x\n")
    with pytest.raises(InputError, match="line 3: "):
        Svmlight().scan(file, 0, 1)
    file.write_bytes(b"\xef\xbb\xbf")
    with pytest.raises(InputError, match="no rows"):
        Svmlight().scan(file)


@pytest.mark.parametrize("sign", [1, -1])
def test_labels_around_the_last_integer_that_float64_tells_from_the_next(tmp_path, sign):
    numbers = [sign * (2**53 + k) for k in (-1, 0, 1, 2, 3)]
    file = tmp_path / "a.svm"
    for some in (numbers, numbers[1:3], numbers[:2], numbers[2:3]):
        file.write_text("".join(f"{number} 1:1\n" for number in some))
        assert [int(label) for label in read_svmlight(file).targets.y] == some
