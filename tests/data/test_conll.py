"""Files of tokens: sentences, labels, shares, dictionaries and hashing."""

import numpy as np
import pytest

from bmrm.data.readers._core.formats import recognised
from bmrm.data.readers.conll import Conll, _Table, read_conll
from bmrm.data.reading import read, scan
from bmrm.data.text_reader import TextReader
from bmrm.data.vocabulary import Vocabulary
from bmrm.problem import InputError

TEXT = "He PRP B-NP\nsaw VBD B-VP\n\n\nNo DT O\r\nhe PRP B-NP\n   \nHe PRP B-NP"
WORD = "w=%x[0,0]\nt=%x[0,1]"


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "a.conll"
    file.write_bytes(TEXT.encode())
    return file


def features(data, vocabulary):
    X = data.X
    return [{vocabulary.names[j] for j in X.indices[a:b]} for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)]


def test_tokens_sentences_labels(path):
    data, vocabulary = read_conll(path, Conll(templates=WORD))
    assert data.targets.y.tolist() == ["B-NP", "B-VP", "O", "B-NP", "B-NP"]
    assert data.targets.groups.tolist() == [0, 0, 1, 1, 2]
    assert data.X.values is None
    assert features(data, vocabulary)[:2] == [{"w=He", "t=PRP"}, {"w=saw", "t=VBD"}]
    assert vocabulary.names[:3] == ("t=PRP", "w=He", "t=DT")  # by falling count, then by name


def test_min_count_leaves_rare_features_out(path):
    data, vocabulary = read_conll(path, Conll(templates=WORD, min_count=2))
    assert vocabulary.names == ("t=PRP", "w=He")
    assert features(data, vocabulary) == [{"w=He", "t=PRP"}, set(), set(), {"t=PRP"}, {"w=He", "t=PRP"}]
    with pytest.raises(InputError, match="no feature occurs in 9 rows"):
        read_conll(path, Conll(templates=WORD, min_count=9))


def test_hashing(path):
    data, vocabulary = read_conll(path, Conll(templates=WORD, hash_bits=1))
    assert (data.features, vocabulary.size, vocabulary.names) == (2, 2, ())
    assert np.all(np.diff(data.X.indptr) <= 2)
    wide, _ = read_conll(path, Conll(templates=WORD, hash_bits=20))
    assert np.diff(wide.X.indptr).tolist() == [2] * 5
    again, _ = read_conll(path, Conll(templates=WORD, hash_bits=20))
    np.testing.assert_array_equal(wide.X.indices, again.X.indices)


def test_features_that_training_has_not_seen(path, tmp_path):
    _, vocabulary = read_conll(path, Conll(templates=WORD))
    other = tmp_path / "b.txt"
    other.write_text("He NN O\nsaw VBD O\n")
    data, same = read_conll(other, Conll(templates=WORD), vocabulary)
    assert same is vocabulary
    assert features(data, vocabulary) == [{"w=He"}, {"w=saw", "t=VBD"}]


def test_the_format_by_its_suffix_and_by_its_name(path):
    options = {"name": "conll", "templates": WORD}
    assert read(path, format=options).X.shape == (5, 7)
    raw = scan(path, format={"name": "conll", "templates": "w=%x[0,0]", "label": 2})
    assert raw.names.format["templates"] == "w=%x[0,0]"
    assert scan(path, format="auto").names is not None


def test_labels_elsewhere_and_nowhere(path):
    data, vocabulary = read_conll(path, Conll(templates="%x[0,0]", label=0))
    assert data.targets.y.tolist() == ["He", "saw", "No", "he", "He"]
    assert vocabulary.names[0] == "PRP"
    unlabelled, _ = read_conll(path, Conll(templates="%x[0,2]", label=None))
    assert not unlabelled.targets.y.any()


@pytest.mark.parametrize("parts", [2, 3, 5])
def test_shares_are_whole_sentences(path, parts):
    whole = scan(path, format={"name": "conll", "templates": WORD})
    names, groups = set(), []
    for part in range(parts):
        raw = scan(path, format={"name": "conll", "templates": WORD}, part=part, parts=parts)
        names |= set(raw.names.names)
        groups += raw.data.targets.groups.tolist()
    assert groups == whole.data.targets.groups.tolist()
    assert names == set(whole.names.names)


def test_several_files_are_joined(path, tmp_path):
    other = tmp_path / "b.conll"
    other.write_text("No DT O\n\nno DT O\n")
    joined = scan([path, other], format={"name": "conll", "templates": WORD})
    data = joined.dataset()
    assert data.targets.groups.tolist() == [0, 0, 1, 1, 2, 3, 4]
    alone, vocabulary = read_conll(other, Conll(templates=WORD), joined.own_vocabulary())
    assert features(data, vocabulary)[5:] == features(alone, vocabulary)


def test_a_model_reads_files_with_and_without_labels(path, tmp_path):
    raw = scan(path, format={"name": "conll", "templates": WORD})
    reader = TextReader(raw.names.format, raw.own_vocabulary())
    again = TextReader.from_file(reader.header(), reader.arrays())
    assert again.vocabulary.names == reader.vocabulary.names
    other = tmp_path / "unlabelled.txt"
    other.write_text("He PRP\nsaw VBD\n")
    assert features(again.read(other), again.vocabulary) == [{"w=He", "t=PRP"}, {"w=saw", "t=VBD"}]
    assert again.read(path).targets.y.tolist() == ["B-NP", "B-VP", "O", "B-NP", "B-NP"]
    other.write_text("He\nsaw\n")
    with pytest.raises(InputError, match="1 columns, expected 3"):
        again.read(other)


def test_templates_from_a_file_travel_with_the_model(path, tmp_path):
    file = tmp_path / "templates.txt"
    file.write_text("# words\n" + WORD)
    raw = scan(path, format={"name": "conll", "templates": str(file)})
    file.unlink()
    reader = TextReader(raw.names.format, raw.own_vocabulary())
    assert reader.read(path).X.shape == (5, 7)


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("", {}, "empty"),
        ("\n\n", {}, "no tokens"),
        ("a b c\na b\n", {}, "line 2: 2 columns, expected 3"),
        ("a b\n", {}, "column 1, the file has 1"),
        ("a b c\n", {"label": 3}, "label column 3, expected 0 to 2, or -1 to -3 from the last"),
        ("a b c\n", {"templates": "chunkin"}, "did you mean 'chunking'"),
        ("a b c\n", {"templates": "%y[0,0]"}, "unknown macro"),
    ],
)
def test_wrong_files(tmp_path, text, options, said):
    file = tmp_path / "wrong.txt"
    file.write_text(text)
    with pytest.raises(InputError, match=said):
        read_conll(file, Conll(**options))


@pytest.mark.parametrize("options", [{"min_count": 0}, {"hash_bits": 31}, {"boundary": "both"}, {"separator": ""}])
def test_wrong_options(options):
    with pytest.raises(InputError):
        Conll(**options)


def test_tabs_may_separate(tmp_path):
    file = tmp_path / "tabs.txt"
    file.write_text("New York\tO\n")
    data, vocabulary = read_conll(file, Conll(templates="%x[0,0]", separator="\t"))
    assert (vocabulary.names, data.targets.y.tolist()) == (("New York",), ["O"])


def test_dictionaries_as_arrays():
    names = ("a", "", "grüße", "x" * 300)
    arrays = Vocabulary(names).arrays()
    assert all(array.dtype.kind in "ui" for array in arrays.values())
    assert Vocabulary.from_arrays(arrays, None).names == names
    for wrong in (
        arrays["feature_ends"][::-1].copy(),
        arrays["feature_ends"] + 1,
        arrays["feature_ends"].astype(float),
    ):
        with pytest.raises(InputError, match="damaged"):
            Vocabulary.from_arrays(arrays | {"feature_ends": wrong}, None)
    with pytest.raises(InputError, match="damaged"):
        Vocabulary.from_arrays(arrays | {"feature_bytes": np.full(arrays["feature_bytes"].size, 255, np.uint8)}, None)


def columns_of(tmp_path, text, **options):
    (tmp_path / "a.conll").write_bytes(text.encode())
    return _Table.read(tmp_path / "a.conll", options.get("separator"), None)


def test_only_blanks_and_tabs_are_between_columns(tmp_path):
    table = columns_of(tmp_path, "10\u00a0km NUM B\n\u2003 SP\tO\nx\u0085y\u2028z S O\n\n\u00a0 S O\n")
    assert table.columns[0] == ("10\u00a0km", "\u2003", "x\u0085y\u2028z", "\u00a0")
    assert table.starts.tolist() == [0, 3, 4]


def test_tokens_with_blanks_between_tabs(tmp_path):
    text = "New York\tNNP\tB\nis\tVBZ\tO\n \t\n\n\tEMPTY\tO\n"
    table = columns_of(tmp_path, text)
    assert table.columns == [("New York", "is", ""), ("NNP", "VBZ", "EMPTY"), ("B", "O", "O")]
    assert table.starts.tolist() == [0, 2, 3]
    assert table.separator == "\t"
    assert columns_of(tmp_path, "New\tNNP\tB\nis VBZ\tO\n").separator is None
    assert columns_of(tmp_path, "New York\tNNP\tB\nLos Angeles\tNNP\tB\n").columns[0] == ("New York", "Los Angeles")
    assert len(columns_of(tmp_path, "He PRP B\tB\nran VBD O\tB\n").columns) == 4
    raw = Conll().scan(tmp_path / "a.conll")
    assert raw.names.format["separator"] is None
    columns_of(tmp_path, text)
    assert Conll().scan(tmp_path / "a.conll").names.format["separator"] == "\t"
    assert isinstance(recognised(tmp_path / "a.conll"), Conll)
    (tmp_path / "b").write_text(text)
    assert isinstance(recognised(tmp_path / "b"), Conll)


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
def test_the_line_that_differs_is_blamed(tmp_path, ends):
    for text, line, found in (
        ("a B\nb X B\nc X B\n", 1, 2),
        ("a X B\nb X B\n\nc X\n", 4, 2),
        ("# id = 7\na B\nb B\n", 1, 4),
    ):
        with pytest.raises(
            InputError, match=rf"a\.conll, line {line}: {found} columns, expected {2 if '#' in text else 3}"
        ):
            columns_of(tmp_path, text.replace("\n", ends))
    (tmp_path / "a.conll").write_text("a\nb X\n")
    with pytest.raises(InputError, match=r"line 1: 1 columns, expected 2"):
        Conll(columns=3).scan(tmp_path / "a.conll")
