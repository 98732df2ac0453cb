"""Templates of features, held against an expansion token by token."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bmrm.data.readers._core.templates import BUILT_IN, Sentences, intern, parse
from bmrm.problem import InputError

WORDS = [["He", "saw", "U.S.-based"], ["No"]]
TAGS = [["PRP", "VBD", "JJ"], ["DT"]]


def expanded(text, columns, mark=True):
    """The set of features of each token, as `Sentences` gives them."""
    lengths = [len(sentence) for sentence in columns[0]]
    starts = np.cumsum([0, *lengths])
    interned = [intern([text for sentence in column for text in sentence]) for column in columns]
    names, places = Sentences(interned, starts, mark).features(parse(text))
    assert len(set(names)) == len(names)
    return [{names[place] for place in row if place >= 0} for row in places]


def slowly(text, columns, mark=True):
    """The same, token by token."""
    changes = {"x": str, "lower": str.lower}
    found = []
    for s, sentence in enumerate(columns[0]):
        for t in range(len(sentence)):
            features = set()
            for line in text.splitlines():
                missing = False

                def look(match, s=s, t=t, sentence=sentence):
                    nonlocal missing
                    size = len(sentence)
                    at, column = t + int(match[2]), int(match[3])
                    if 0 <= at < size:
                        return changes[match[1]](columns[column][s][at])
                    missing = True
                    return f"_B{at}" if at < 0 else f"_B+{at - size + 1}"

                name = re.sub(r"%(\w+)\[(-?\d+),(\d+)\]", look, line)
                if mark or not missing:
                    features.add(name)
            found.append(features)
    return found


def test_windows_and_conjunctions():
    text = "U0:%x[0,0]\nU1:%x[-1,0]/%x[0,1]"
    assert expanded(text, [WORDS, TAGS]) == [
        {"U0:He", "U1:_B-1/PRP"},
        {"U0:saw", "U1:He/VBD"},
        {"U0:U.S.-based", "U1:saw/JJ"},
        {"U0:No", "U1:_B-1/DT"},
    ]
    assert expanded(text, [WORDS, TAGS], mark=False)[0] == {"U0:He"}


def test_functions_of_text():
    text = "\n".join(["%shape[0,0]", "s=%short[0,0]", "p=%prefix[0,0,3]", "e=%suffix[0,0,2]", "l=%lower[1,0]"])
    assert expanded(text, [[["McDonald-33", "ab"]]]) == [
        {"XxXxxxxx-dd", "s=XxXx-d", "p=McD", "e=33", "l=ab"},
        {"xx", "s=x", "e=ab", "l=_B+1"},
    ]


def test_templates_without_names_share_features():
    found = expanded("%x[0,0]\n%x[1,0]", [[["a", "b", "a"]]], mark=False)
    assert found == [{"a", "b"}, {"b", "a"}, {"a"}]


def test_far_beyond_the_sentence():
    assert expanded("%x[-3,0]|%x[2,0]", [WORDS])[:3] == [{"_B-3|U.S.-based"}, {"_B-2|_B+1"}, {"_B-1|_B+2"}]


@given(
    st.lists(
        st.lists(st.sampled_from(["a", "B", "cc", "_B-1", "%x", "|"]), min_size=1, max_size=5), min_size=1, max_size=4
    ),
    st.lists(
        st.lists(
            st.tuples(st.sampled_from(["x", "lower"]), st.integers(-3, 3), st.integers(0, 1)), min_size=1, max_size=3
        ),
        min_size=1,
        max_size=4,
    ),
    st.booleans(),
)
def test_any_templates_are_expanded_as_token_by_token(words, templates, mark):
    tags = [[word[:1] + str(t % 2) for t, word in enumerate(sentence)] for sentence in words]
    text = "\n".join(
        f"{k}=" + "/".join(f"%{name}[{row},{column}]" for name, row, column in macros)
        for k, macros in enumerate(templates)
    )
    assert expanded(text, [words, tags], mark) == slowly(text, [words, tags], mark)


def test_built_in_sets():
    assert len(parse(BUILT_IN["chunking"])) == 19
    assert "w[-1]|w[0]=%x[-1,0]|%x[0,0]" in BUILT_IN["chunking"].splitlines()
    assert len(parse(BUILT_IN["tagging"])) > 10


def test_comments_and_the_transitions_of_crf_plus_plus():
    assert len(parse("# Unigram\nU00:%x[-2,0]\n\n# Bigram\nB\n")) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no feature templates"),
        ("word", "line 1, 'word': expected macros"),
        ("a=%x[0,0]\nB01:%x[0,0]", "line 2.*transitions: observed"),
        ("%y[0,0]", "unknown macro %y"),
        ("%prefx[0,0,1]", "did you mean 'prefix'"),
        ("%x[0]", "expected macros"),
        ("%prefix[0,0]", "expected %prefix"),
        ("%x[0,0,2]", "expected %x"),
    ],
)
def test_wrong_templates(text, said):
    with pytest.raises(InputError, match=said):
        parse(text)


def test_a_column_that_is_not_there():
    with pytest.raises(InputError, match="column 1, the file has 1"):
        expanded("%x[0,1]", [WORDS])
