"""What people say: clauses, negation, doubt; and the lexicon of the observations."""

import json

import pytest
from places import TESTS

from dtdebug_taxonomy.incident import Incident
from dtdebug_taxonomy.inference.collect import collect
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.text.clauses import hits_in_words
from dtdebug_taxonomy.text.pattern_matcher import Matcher, index_of

HANGS = Matcher(
    index_of([("hang", r"hang(s|ing)?\b"), ("silent", r"no output"), ("error", r"error"), ("late", r"after the third")])
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It hangs in the first epoch.", {"hang"}),
        ("It does not hang any more.", set()),
        ("There is no error, it just hangs.", {"hang"}),
        ("no output at all", {"silent"}),
        ("It never seems to hang on one node.", set()),
        ("I wonder if it hangs there.", set()),
        ("It looks as if it hangs.", {"hang"}),
        ("There is no progress after the third step.", {"late"}),
        ("Not after the third step, but before.", set()),
        ("No error but it hangs", {"hang"}),
        ("It's not clear to me at all why it hangs", {"hang"}),
        ("without any error", set()),
        ("I made the batch small to avoid the possibility of a second hang.", set()),
        ("The message lists possible causes (a hang, no output), but none of it was seen.", set()),
    ],
)
def test_what_is_denied_or_only_wondered_about_does_not_count(text, expected):
    """A negation reaches a few words, within its clause; a match that contains it stands."""
    assert expected == {h.key for h in hits_in_words(HANGS, text)}


def _lines():

    path = TESTS / "samples" / "observations.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


@pytest.mark.parametrize(
    "row", _lines(), ids=lambda row: f"{row['key']}={row['value']}: {row.get('said') or row.get('printed')}"[:90]
)
def test_the_lexicon_reads_observations_out_of_words_and_output(row):
    """Each sentence yields its value; a sentence with no value yields nothing for its key."""
    snapshot = Snapshot(situation=row.get("said", ""), output=row.get("printed", ""))
    found = {f.evidence: f.values for f in collect(load(), Incident(snapshot)) if f.values}
    if row["value"] is None:
        assert row["key"] not in found
    else:
        assert row["value"] in found.get(row["key"], ())


def _described():
    path = TESTS / "cases" / "described.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


@pytest.mark.parametrize(
    ("key", "least"),
    [
        ("activity", 0.85),
        ("manifestation", 0.85),
        ("any_step_completed", 0.6),
        ("nodes", 0.85),
        ("failing_ranks", 0.75),
    ],
)
def test_plain_descriptions_say_what_was_seen(key, least):
    """Of people's own descriptions that tell an observation, so many are read right and hardly any wrong."""
    right = wrong = told = 0
    for row in _described():
        if key not in row["observations"]:
            continue
        found = {f.evidence: f.values for f in collect(load(), Incident(Snapshot(situation=row["situation"])))}.get(
            key, ()
        )
        told += 1
        right += bool(set(found) & set(row["observations"][key]))
        wrong += bool(found) and set(found).isdisjoint(row["observations"][key])
    assert least <= right / told
    assert wrong / told <= 0.05


def test_described_situations_use_known_values_and_each_thread_once():
    """Labels are values of the observations, and no thread is a rated case too."""
    rows, observations = _described(), load().observations
    for row in rows:
        for key, values in row["observations"].items():
            assert set(values) <= {v.value for v in observations[key].value}, row["url"]
    urls = [row["url"] for row in rows]
    assert len(urls) == len(set(urls))
    for other in TESTS.joinpath("cases").glob("*.jsonl"):
        if other.name != "described.jsonl":
            rated = {
                json.loads(line).get("url") for line in other.read_text(encoding="utf-8").splitlines() if line.strip()
            }
            assert rated.isdisjoint(urls)
