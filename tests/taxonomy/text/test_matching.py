"""Finding patterns in text, and which patterns may be used."""

import re

import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st

from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.text.pattern_matcher import (
    HITS_PER_PATTERN,
    LINE_LIMIT,
    Matcher,
    clip_lines,
    index_of,
    literals,
    problem_of,
)


@pytest.mark.parametrize(
    ("pattern", "needed"),
    [
        ("Address already in use", ("address already in use",)),
        ("connect(ion)? refused", (" refused",)),
        ("no route|not reachable", ("no route", "not reachable")),
        (r"undefined symbol: \w{1,80}", ("undefined symbol: ",)),
        (r"rank \d{1,4} of \d{1,4}", ("rank ",)),
        (r"\[rank\d{1,4}\]: lost", ("]: lost",)),
        ("(?:abc|def)", ("abc", "def")),
        ("(two|three) ?(hosts|nodes)", ("hosts", "nodes")),
        ("(ab|cde)?fgh", ("fgh",)),
        ("(ab|cde)f", ("",)),
        ("colou?rs", ("colo",)),
    ],
)
def test_a_pattern_needs_its_longest_literal(pattern, needed):
    """Each top-level alternative names the literal without which it can't match."""
    assert needed == literals(pattern)


@pytest.mark.parametrize(
    "pattern", ["foo(?=bar)", r"(foo) \1", "fo.*bar", r"foo\w+bar", "(foo ){2}bar+", "x{0,999}foo", "(ab|cd)", "(abc)?"]
)
def test_patterns_outside_the_linear_subset_are_refused(pattern):
    """Look-around, back-references, unbounded or nested repeats and missing literals are named."""
    assert problem_of(pattern)


def test_every_shipped_pattern_is_in_the_common_subset_of_engines():
    """RE2, which is linear by construction, accepts every pattern of the knowledge."""
    knowledge = load()
    patterns = [p for e in knowledge.evidence.values() for p in (*e.text, *e.says)]
    patterns += [p for o in knowledge.observations.values() for v in o.value for p in (*v.text, *v.says)]
    refused = []
    for pattern in patterns:
        try:
            re2.compile(pattern)
        except re2.error:
            refused.append(pattern)

    assert refused == []


def test_a_literal_never_hides_a_match():
    """What the plain regular expression finds in the samples, the matcher finds too."""
    knowledge = load()
    rows = [(e.id, p) for e in knowledge.evidence.values() for p in e.text]
    text = "\n".join(p.replace("\\", "") for _, p in rows)  # a text that is full of literals
    found = {h.key for h in Matcher(index_of(rows)).hits(text)}
    expected = {key for key, p in rows if re.search(p, clip_lines(text), re.IGNORECASE | re.MULTILINE)}

    assert expected == found


def test_hits_tell_line_offset_and_words():
    """A hit names the 1-based line, the offset and what was matched."""
    (hit,) = Matcher(index_of([("port", "address already in use")])).hits("one\ntwo: Address already in use (98)\n")

    assert tuple(hit) == ("port", 2, 9, "Address already in use")


def test_hits_of_one_pattern_are_bounded():
    """A message that is repeated a thousand times counts a few times."""
    hits = list(Matcher(index_of([("port", "address in use")])).hits("address in use\n" * 1000))

    assert len(hits) == HITS_PER_PATTERN


@pytest.mark.parametrize("patterns", [("setup.py", "setup.py install"), ("setup.py install", "setup.py")])
def test_two_matches_at_one_place_are_two_hits(patterns):
    """Whichever pattern comes first: a reader may refuse one of them, and need the other."""
    hits = Matcher(index_of([("installing", pattern) for pattern in patterns])).hits("python setup.py install fails")

    assert {"setup.py", "setup.py install"} == {hit.words for hit in hits}


@given(st.text(max_size=5_000))
def test_any_text_is_matched_without_failing(text):
    """Letters that change their length when lowered, control characters, anything."""
    for hit in Matcher(index_of([("i", "\u0130nit"), ("x", "nccl warn"), ("y", "[a-z]{1,20} refused")])).hits(text):
        assert hit.line >= 1


def test_long_lines_are_cut_and_others_keep_their_numbers():
    """A line of ten million characters costs no more than a short one."""
    text = "first\n" + "x" * 10_000_000 + "\nthird error"
    clipped = clip_lines(text)

    assert clipped.split("\n") == ["first", "x" * LINE_LIMIT, "third error"]


def test_flags_and_names_of_a_group_are_no_text():
    """Else no line would hold what the pattern seems to need."""
    matcher = Matcher(index_of([("upper", r"KeyError: .(?-i:RANK).{0,3}$"), ("named", r"lost (?P<who>rank) \d")]))

    assert ["upper"] == [hit.key for hit in matcher.hits("KeyError: 'RANK'")]
    assert ["named"] == [hit.key for hit in matcher.hits("lost rank 3")]
    assert [] == [hit.key for hit in matcher.hits("KeyError: 'rank'")]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("It does not occur with P2P off. The driver is 10.0", []),
        ("It does not occur with driver 9.0 either. It is 10.0", ["not occur with driver 9.0"]),
        ("It does not occur. It does not occur with 9.0", ["not occur with 9.0"]),
        ("It does not occur with e.g. ROCm 9.0", ["not occur with e.g. ROCm 9.0"]),
    ],
)
def test_what_two_sentences_say_is_not_read_as_one(text, words):
    """A pattern on words stays within a sentence; one on printed text does not care."""
    pattern = [("pair", r"not occur\b.{0,40}\d{1,2}\.\d")]

    assert words == [h.words for h in Matcher(index_of([], words=pattern)).hits(text)]
    assert [h.words for h in Matcher(index_of(pattern)).hits(text)]
