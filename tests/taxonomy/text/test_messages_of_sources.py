"""Messages as the source of a framework words them, filled in, show the indicators that stand for them.

`messages_of_sources.jsonl` names repository and file of each, or the thread that quotes it. They are the committed
texts of indicators that no sample shows; `python benchmarks/ablate.py --indicators` lists those that still have none.
Where releases word a message differently an indicator has a row for each wording.
"""

import json

from places import TESTS

from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.text.matchers import matchers_of

ROWS = [json.loads(row) for row in (TESTS / "messages_of_sources.jsonl").read_text().splitlines()]


def test_the_message_of_a_framework_shows_its_indicator():
    matcher = matchers_of(load()).words_matcher
    missed = [row["indicator"] for row in ROWS if all(h.key != row["indicator"] for h in matcher.hits(row["text"]))]
    assert missed == []


def test_each_message_stands_once_and_names_where_it_is_printed():
    assert len({(row["indicator"], row["text"]) for row in ROWS}) == len(ROWS)
    assert all(": " in row["source"] and "/" in row["source"].partition(": ")[0] for row in ROWS)
