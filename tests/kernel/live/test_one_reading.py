"""One reading of a failure: all surfaces say the same of one job, and nothing that its records do not hold."""

import json
import re
from html import unescape

import msgspec
import pytest

from dtdebug.live.job import report
from dtdebug.live.job.conclude import conclude
from dtdebug.live.job.observe import LiveRanks
from dtdebug.notebook import panel_view, render_ranks
from dtdebug.notebook.ranks_seen import RanksSeen
from dtdebug.presentation import diagnosis_card
from dtdebug.wizard import widgets
from dtdebug.wizard.session import Session
from dtdebug_taxonomy.diagnosis.headline import claims_seen
from dtdebug_taxonomy.model.ranks import Frame, Group, Operation, RankState
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.presentation.case_json import contract
from dtdebug_taxonomy.presentation.editor_marks import failure_of
from dtdebug_taxonomy.presentation.text import to_markdown

GROUP = Group(name="0", desc="default_pg", ranks=(0, 1, 2), backend="gloo", enqueued=6, completed=5)
C10D = "/site-packages/torch/distributed/distributed_c10d.py"


def state(rank, *frames, pending=None):
    """A living rank of three on one host."""
    stack = tuple(Frame(file, line, function) for file, line, function in frames)
    return RankState(
        rank=rank, world_size=3, host="a", pid=100 + rank, initialized=True, alive=True, stack=stack, pending=pending,
        groups=(GROUP,), time=1000.0, backend="gloo",
    )  # fmt: skip


def hanging():
    """Ranks 0 and 2 wait in a collective; rank 1 evaluates."""
    waits = Operation(op="all_reduce", group="0", seq=6, since=900.0)
    there = (("/u/train.py", 9, "train"), (C10D, 3252, "all_reduce"))
    return (
        state(0, *there, pending=waits),
        state(1, ("/u/train.py", 8, "train"), ("/u/train.py", 3, "evaluate")),
        state(2, *there, pending=waits),
    )


def raised():
    """Rank 1 has raised in its own code; the launcher has ended the others."""
    there = (("/u/train.py", 9, "train"), (C10D, 3252, "all_reduce"))
    ended = state(1, ("/u/data.py", 41, "decode"))
    ended = msgspec.structs.replace(ended, alive=False, exit_code=1, exception="ValueError: shard 7 is truncated")
    others = (msgspec.structs.replace(state(rank, *there), alive=False, signal="SIGTERM") for rank in (0, 2))
    first, last = others
    return first, ended, last


@pytest.fixture(params=[hanging, raised], ids=["hangs", "raised"])
def case(request, monkeypatch, tmp_path):
    """A case as `run` and `attach` make it."""
    monkeypatch.setenv("DTDEBUG_STATE", str(tmp_path))
    states = request.param()
    return conclude(None, LiveRanks(states=states, progress={s.rank: "stuck" for s in states}), moving=False)


def words(text):
    """A text without marks of HTML and Markdown, breaks and numbers of lines."""
    return " ".join(re.sub(r"<[^>]*>|\\(?=[\W_])", "", unescape(text)).split())


def test_all_surfaces_say_the_same_of_one_job(case):
    """The first line and what supports it: terminal, JSON, card, saved card, hang, panel, report, editor."""
    snapshot = Snapshot(ranks=case.ranks, verdict=case.verdict)
    asked = RanksSeen(kind="hang", ranks=case.ranks, verdict=case.verdict, moved=False)
    first, rows = case.verdict.summary, [row.text for row in claims_seen(case.verdict)]
    form = contract(case)
    saved = diagnosis_card.small(case.diagnosis)
    surfaces = {
        "terminal": report.to_text(case, "no rank has moved"),
        "json": json.dumps([form["verdict"]["summary"], form["verdict"]["evidence"], form["claims"]]),
        "card as text": diagnosis_card.bundle(case.diagnosis)["text/plain"],
        "card as HTML": diagnosis_card.to_html(case.diagnosis),
        "saved card": json.dumps([saved["happened"], saved["seen"]]),
        "hang": render_ranks.plain_text(asked),
        "report": to_markdown(case.diagnosis, snapshot),
        "panel": msgspec.json.encode(panel_view.view(asked).verdict).decode(),
    }

    assert case.verdict.culprits == (1,)
    assert rows
    for name, text in surfaces.items():
        assert first in words(text), name
        assert rows[0] in words(text) or name == "card as text", name
    short = diagnosis_card.bundle(case.diagnosis, snapshot)["text/plain"]
    for text in (short, widgets.story(Session(snapshot=snapshot))["text/plain"]):  # these show the places instead
        assert [] == [s for s in case.verdict.sites if f"{s.file.rpartition('/')[2]}:{s.line}" not in words(text)]
    assert first in failure_of(snapshot, case.diagnosis, job="j", time=1.0).message


def test_the_first_line_is_what_happened_and_the_symptom_comes_below(case):
    """Which rank and where, before the class of the symptom."""
    text = report.to_text(case, "the job hangs")
    code = case.diagnosis.symptoms[0].code

    assert text.startswith(f"dtdebug: {case.verdict.summary}\n")
    assert re.search(r":\d+", text.splitlines()[0])
    assert text.index("the job hangs") < text.index(f"({code})")
    assert diagnosis_card.to_html(case.diagnosis).index("Rank 1".lower()[1:]) < diagnosis_card.to_html(
        case.diagnosis
    ).index(code)


def test_the_form_for_programs_cites_records(case):
    """Each claim has its text, its ranks and the record it rests on; the place is that of the culprit."""
    form = contract(case)

    assert {"v", "verdict", "claims", "advice", "coverage", "diagnosis"} <= form.keys()
    assert [a["title"] for a in form["advice"]] == [a["title"] for a in form["diagnosis"]["advice"]]
    labels = form["advice"][0]["second_study"]
    assert {"read", "reconstructed"} >= {x["provenance"] for x in (*labels["symptoms"], *labels["causes"])} != set()
    assert {"kind", "culprits", "waiting", "group", "collective", "where", "confidence", "summary", "evidence"} <= (
        form["verdict"].keys()
    )
    assert {"ranks", "hosts", "read", "unread"} <= form["coverage"].keys()
    site = next(s for s in case.verdict.sites if s.rank in case.verdict.culprits)
    assert form["verdict"]["where"] == {"file": site.file, "line": site.line, "function": site.function}
    assert form["claims"]
    for claim in form["claims"]:
        assert claim["text"]
        assert claim["record"]["source"]
        assert set(claim["ranks"]) <= {0, 1, 2}
