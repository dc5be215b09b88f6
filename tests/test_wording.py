"""What people say: clauses, negation, doubt; and the lexicon of the observations."""

import json

import pytest

from dtdebug_taxonomy.findings import collect
from dtdebug_taxonomy.knowledge import load
from dtdebug_taxonomy.matching import Matcher
from dtdebug_taxonomy.snapshot import Snapshot
from dtdebug_taxonomy.wording import said

HANGS = Matcher([("hang", r"hang(s|ing)?\b"), ("silent", r"no output"), ("error", r"error")])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It hangs in the first epoch.", {"hang"}),
        ("It does not hang any more.", set()),
        ("There is no error, it just hangs.", {"hang"}),
        ("no output at all", {"silent"}),
        ("It never seems to hang on one node.", set()),
        ("I wonder if it hangs there.", set()),
        ("No error but it hangs", {"hang"}),
        ("It's not clear to me at all why it hangs", {"hang"}),
        ("without any error", set()),
    ],
)
def test_what_is_denied_or_only_wondered_about_does_not_count(text, expected):
    """A negation reaches a few words, within its clause; a match that contains it stands."""
    assert expected == {h.key for h in said(HANGS, text)}


def _lines():
    from pathlib import Path

    path = Path(__file__).parent / "samples" / "observations.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


@pytest.mark.parametrize(
    "row", _lines(), ids=lambda row: f"{row['key']}={row['value']}: {row.get('said') or row.get('printed')}"[:90]
)
def test_the_lexicon_reads_observations_out_of_words_and_output(row):
    """Each sentence yields its value; a sentence with no value yields nothing for its key."""
    snapshot = Snapshot(situation=row.get("said", ""), output=row.get("printed", ""))
    found = {f.evidence: f.values for f in collect(load(), snapshot) if f.values}
    if row["value"] is None:
        assert row["key"] not in found
    else:
        assert row["value"] in found.get(row["key"], ())
