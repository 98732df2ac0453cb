"""Files of tokens: sentences, labels, shares, dictionaries and hashing."""

import numpy as np
import pytest

from bmrm.data.readers.conll import Conll, read_conll
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
