"""What front ends draw of the ranks: made from what was seen, clean, short, and bounded whatever ranks say."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import flight_cases
import flight_data
import flight_jobs
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dtdebug.notebook import cell_journal
from dtdebug.notebook import cheap_poll as glancing
from dtdebug.notebook.cells import RunningCell
from dtdebug.notebook.observe_ranks import has_moved
from dtdebug.notebook.panel_view import view
from dtdebug.notebook.ranks_seen import RanksSeen
from dtdebug.recorded.flight_recorder import analyse
from dtdebug.storage.run_folder import RunFolder
from dtdebug_taxonomy.model.claims import Claim, Record
from dtdebug_taxonomy.model.ranks import (
    Alternative,
    CallSite,
    CollectiveRef,
    Frame,
    Group,
    GroupRef,
    Operation,
    RankState,
    Verdict,
)
from dtdebug_taxonomy.model.ranks_view import View
from dtdebug_taxonomy.model.snapshot import Gpu

NOW = 1_760_000_000.0
LARGEST = 1_500_000
HOSTILE = "<img src=x onerror=alert(1)>\x1b[31m\u202e\n hf_abcdefghijklmnopqrstuv " + "x" * 5000


def rank(number, **more):
    """A rank that waits in a collective, unless told otherwise."""
    inside = Operation(op="all_reduce", group="0", seq=41, since=NOW - 74)
    stack = (Frame("cell In[3]", 6, "train", "step(x)"), Frame("/x/site-packages/torch/distributed/c.py", 9, "wait"))
    known = {"world_size": 4, "pid": 100 + number, "alive": True, "roads": {"endpoint": "ok"}}
    return RankState(rank=number, **{**known, "pending": inside, "stack": stack, **more})


def elsewhere(number, **more):
    """A rank in the user's own code."""
    return rank(number, pending=None, stack=(Frame("/job/train.py", 12, "load", "time.sleep(60)"),), **more)


def verdict(culprits=(3,), waiting=(0, 1, 2), **more):
    known = {"kind": "not_arrived", "collective": CollectiveRef("all_reduce", 41), "summary": "Rank 3 is elsewhere."}
    return Verdict(culprits=culprits, waiting=waiting, **{**known, **more})


def drawn(*ranks, **more):
    return view(RanksSeen(kind="hang", ranks=ranks, **more), taken=NOW)


def test_a_hang_is_told_in_one_line():
    """Who waits, for how long, in what, for whom."""
    seen = drawn(rank(0), rank(1), rank(2), elsewhere(3), verdict=verdict())
    alone = drawn(rank(0), elsewhere(1), verdict=verdict((1,), (0,)))

    assert "ranks 0-2 wait 74 s in all_reduce #41 for rank 3" == seen.line
    assert "rank 0 waits 74 s in all_reduce #41 for rank 1" == alone.line
    assert seen.hangs


def test_rows_tell_what_each_rank_does():
    """The culprit, those who wait, one that has ended, one that does not answer."""
    seen = drawn(
        rank(0, step=7, device_memory=(1, 2), host="a"),
        rank(1, alive=False, pending=None),
        rank(2, pending=None, alive=None, roads={"endpoint": "refused"}),
        elsewhere(3),
        elsewhere(4),
        verdict=verdict(waiting=(0,)),
    )

    assert ["waits", "gone", "silent", "culprit", "runs"] == [row.state for row in seen.rows]
    first = seen.rows[0]
    assert ("all_reduce", 41, "0", NOW - 74) == (first.op, first.seq, first.group, first.since)
    assert (7, (1, 2), "a", 100) == (first.step, first.memory, first.host, first.pid)
    assert "cell In[3], line 6, in train" == first.at
    assert "train.py:12 load" == seen.rows[3].at


@pytest.mark.parametrize(
    ("found", "moves", "hangs"),
    [
        (verdict(), None, True),
        (None, False, True),
        (None, True, False),
        (None, None, None),
        (Verdict(kind="none", summary="Nothing hangs."), None, None),
        (Verdict(kind="none"), True, False),
    ],
)
def test_a_hang_is_measured(found, moves, hangs):
    """By a verdict, or by two looks between which nothing moved; else it can't be told, and the line is empty."""
    seen = drawn(rank(0), rank(1), verdict=found, moved=moves)

    assert hangs is seen.hangs
    assert bool(seen.line) == (hangs is True)


def test_ranks_that_were_read_once_outside_of_a_collective_are_not_said_to_wait():
    """They may import or compute; two looks in which they rest, or an open collective, are something else."""
    once = Verdict(kind="not_understood", waiting=(0, 1), summary="Whether ranks 0-1 make progress is not known.")
    twice = msgspec.structs.replace(once, claims=(Claim(what="unmoved", ranks=(0, 1), record=Record(source="stack")),))
    seen = drawn(elsewhere(0), elsewhere(1), verdict=once)

    assert (["runs", "runs"], None, "") == ([row.state for row in seen.rows], seen.hangs, seen.line)
    assert seen.verdict.summary == once.summary
    assert drawn(elsewhere(0), elsewhere(1), verdict=once, moved=False).hangs is None
    assert drawn(elsewhere(0), elsewhere(1), verdict=twice).hangs
    assert drawn(rank(0), elsewhere(1), verdict=once).hangs


def test_ranks_that_compute_in_silence_are_no_hang():
    """Their counters rest as well."""
    assert drawn(elsewhere(0), elsewhere(1), moved=False).hangs is None


def test_a_verdict_without_anybody_who_waits_is_its_own_line():
    """As of a rank that has died alone."""
    assert "Rank 3 is elsewhere." == drawn(elsewhere(3), verdict=verdict(waiting=())).line


def test_a_clock_that_goes_wrong_tells_no_time():
    """Of a rank on another host; an offset that was measured counts."""
    ahead = Operation(op="barrier", since=NOW + 999)
    seen = drawn(rank(0, pending=ahead), rank(1, pending=ahead, clock_offset=-1009.0), moved=False)

    assert [None, NOW - 10] == [row.since for row in seen.rows]
    assert "ranks 0-1 wait 10 s in barrier" == seen.line


def test_two_looks_tell_what_moves():
    """By counters or by the stack; looks that follow each other at once tell nothing of hanging."""
    group = Group(name="0", enqueued=5, completed=4)
    early, soon, late = (rank(0, time=NOW + t, groups=(group,)) for t in (0.0, 1.0, 4.0))
    on = rank(0, time=NOW + 4, groups=(msgspec.structs.replace(group, completed=5),))

    bare = tuple(Frame(f.file, f.line, f.function) for f in early.stack)

    assert has_moved([early], [late]) is False
    assert has_moved([msgspec.structs.replace(early, stack=bare)], [late]) is False
    assert has_moved([early], [soon]) is None
    assert has_moved([early], [on]) is True
    assert has_moved([], [late]) is None


def test_the_cell_is_told_with_its_line_and_how_long_it_runs():
    """The stack tells the line, the journal when it began; an entry of a cell that has ended tells nothing."""
    entry = cell_journal.LastCell(running=True, pid=1, kernel="k", number=3, begun=NOW - 30, source="x")
    ended = msgspec.structs.replace(entry, running=False)
    stack = (Frame("cell In[3]", 2, "<module>", "train()"), Frame("/job/train.py", 4, "train", "loss.backward()"))
    seen = RanksSeen(kind="hang", here=RunningCell(stack=stack, busy=0.25))
    cell = view(seen, entry=entry, taken=NOW).cell

    assert (3, 2, "train()", 30.0, 0.25) == (cell.number, cell.line, cell.code, cell.seconds, cell.busy)
    assert ["cell In[3], line 2", "train.py:4 train"] == [frame.at for frame in cell.frames]
    assert view(seen, entry=ended, taken=NOW).cell.seconds is None
    assert (3, None) == ((only := view(RanksSeen(kind="hang"), entry=entry, taken=NOW).cell).number, only.line)
    assert view(RanksSeen(kind="hang"), entry=ended).cell is None


def test_the_tree_parts_where_the_ranks_do():
    """The largest branch first, the culprit's marked."""
    tree = drawn(rank(0), rank(1), rank(2), elsewhere(3), verdict=verdict()).tree

    assert ("0-3", 4, False) == (tree.ranks, tree.count, tree.culprit)
    assert [("0-2", False), ("3", True)] == [(b.ranks, b.culprit) for b in tree.branches]
    assert [("cell In[3], line 6, in train", "step(x)", True), ("torch/distributed/c.py:9 wait", "", False)] == [
        (f.at, f.code, f.own) for f in tree.branches[0].frames
    ]


def test_devices_tell_who_is_on_them():
    """Ranks by number, others by process."""
    gpu = Gpu(index=1, name="H", memory_total=9, memory_used=5, utilization=80, processes=((100, 4), (7, 1)))

    assert (("rank 0", 4), ("pid 7", 1)) == drawn(rank(0), gpus=(gpu,)).devices[0].users


def parts(branch):
    yield branch
    for below in branch.branches:
        yield from parts(below)


@pytest.mark.parametrize("hostile", ["", HOSTILE, "\U0001f9ea" * 999])
def test_4096_ranks_are_drawn(hostile):
    """In less than 1.5 MB, the culprit among the rows; whatever they call themselves. The time is printed."""
    ranks = []
    for number in range(5000):
        deep = tuple(Frame(f"/x/site-packages/torch/{i}.py", number * bool(hostile) + i, f"f{i}") for i in range(40))
        name = f"{number}{hostile}" if hostile else f"node{number // 8}"
        own = Frame(f"/job/{name}.py" if hostile else "/job/train.py", number, name if hostile else "train", name)
        inside = Operation(op=name, group=name, seq=2**63 - 1 if hostile else 41, since=NOW - 74)
        ranks.append(rank(number, host=name, step=2**62, pending=inside, stack=(*deep, own)))
    found = verdict((4999,), tuple(range(4999)), evidence=(HOSTILE,) * 99, summary=HOSTILE)
    begin = time.perf_counter()
    seen = drawn(*ranks, verdict=found, notes=(HOSTILE,) * 99)
    spent = time.perf_counter() - begin
    data = msgspec.json.encode(seen)
    print(f"\n{spent * 1e3:.0f} ms, {len(data)} bytes")

    assert (4096, "culprit") == (len(seen.rows), seen.rows[-1].state)
    assert len(data) < LARGEST
    assert "904 more ranks are not shown" == seen.notes[0] or hostile
    assert seen.tree is None or 200 >= sum(1 for _ in parts(seen.tree))
    assert seen.tree or "the ranks' own texts are too long to be shown" == seen.notes[-1]


def test_what_ranks_say_is_made_safe():
    """Escapes, secrets, line breaks and endless texts; markup stays text, which front ends escape."""
    site = CallSite(3, HOSTILE, 1, HOSTILE)
    other = Alternative(kind="fabric", culprits=(1,), because=HOSTILE, refute=HOSTILE)
    found = verdict(
        sites=(site,), evidence=(HOSTILE,), alternatives=(other,), summary=HOSTILE, group=GroupRef(HOSTILE, (0,))
    )
    stack = (Frame(HOSTILE, 1, HOSTILE, HOSTILE), Frame("cell " + HOSTILE, 1, HOSTILE, HOSTILE))
    text = json.dumps(
        msgspec.to_builtins(
            drawn(
                rank(0, host=HOSTILE, stack=stack, pending=Operation(op=HOSTILE, group=HOSTILE)),
                verdict=found,
                here=RunningCell(stack=stack),
                notes=(HOSTILE,),
                gpus=(Gpu(index=0, name=HOSTILE),),
            )
        )
    )

    assert not [bad for bad in ("\\u001b", "\\u202e", "\\n", "hf_abc", "x" * 600) if bad in text]


texts = st.text(max_size=30)
frames = st.builds(Frame, texts, st.integers(-(2**63), 2**63 - 1), texts, texts)
pending = st.builds(
    Operation, op=texts, group=texts, seq=st.integers(-(2**63), 2**63 - 1), since=st.floats(allow_subnormal=False)
)
states = st.builds(
    RankState,
    rank=st.none() | st.integers(0, 9),
    pending=st.none() | pending,
    stack=st.lists(frames, max_size=4).map(tuple),
    alive=st.none() | st.booleans(),
    step=st.none() | st.integers(-(2**63), 2**63 - 1),
    clock_offset=st.floats(),
    roads=st.dictionaries(texts, texts, max_size=2),
)
verdicts = st.builds(
    Verdict,
    kind=st.sampled_from(["none", "dead", "skipped"]),
    culprits=st.lists(st.integers(0, 9), max_size=3).map(tuple),
    waiting=st.lists(st.integers(0, 9), max_size=3).map(tuple),
    summary=texts,
)


@settings(max_examples=150, deadline=None)
@given(st.lists(states, max_size=6), st.none() | verdicts, st.none() | st.booleans(), st.lists(frames, max_size=3))
def test_whatever_was_seen_becomes_a_view(ranks, found, moves, stack):
    """That another program reads back alike."""
    seen = RanksSeen(kind="hang", ranks=tuple(ranks), verdict=found, moved=moves, here=RunningCell(stack=tuple(stack)))
    made = view(seen, taken=NOW)
    data = msgspec.json.encode(made)

    assert made == msgspec.json.decode(data, type=View)
    json.loads(data)


# The time line.


def timeline(folder, dumps, form="2.10", states=()):
    return analyse(flight_data.write(folder, dumps, form), states=states, moving=False, timeline=True).timeline


@pytest.mark.parametrize(
    ("kind", "odd"), [("skipped", True), ("replaced", True), ("wrong_size", True), ("not_arrived", False)]
)
@pytest.mark.parametrize("form", ["2.10", "1.4", "json"])
def test_the_divergence_is_seen_in_the_time_line(tmp_path, kind, odd, form):
    """As NCCL leaves it: the culprit in a lane of its own above the others, which part at one number."""
    job = flight_jobs.one_group(8, 30)
    dumps, _ = flight_data.make(job, flight_data.Fault(kind, (5,)), form)
    seen = timeline(tmp_path, dumps, form)
    first, rest = seen.lanes[0], seen.lanes[1]
    shown = {call.seq for lane in seen.lanes for call in lane.calls}

    assert ("5", 1, True) == (first.ranks, first.count, first.culprit)
    assert ("0-4,6-7", 7, False) == (rest.ranks, rest.count, rest.culprit)
    assert 16 >= len(shown)
    assert seen.parted in shown
    assert any(call.open for call in rest.calls)
    at_parting = [call for call in first.calls if call.seq == seen.parted]
    assert [odd] == [call.odd for call in at_parting] if odd else [] == at_parting
    assert not any(call.odd for call in rest.calls)
    if form == "2.10":
        assert all(call.at.startswith("train.py:") for call in rest.calls)
        assert [call.begun for call in rest.calls] == sorted(call.begun for call in rest.calls)
        assert rest.calls[0].begun > 0


def test_of_two_ranks_the_verdict_tells_which_is_odd(tmp_path):
    """There is no majority."""
    run = next(run for run in flight_cases.RUNS if run.name == "a rank that never begins the batch")
    seen = timeline(tmp_path, flight_cases.of_run(run, waiting=True))

    assert ["0", "1"] == [lane.ranks for lane in seen.lanes]
    assert [True, False] == [lane.culprit for lane in seen.lanes]
    assert 2 == seen.parted


def test_a_rank_without_a_dump_has_an_empty_lane(tmp_path):
    """As one that died."""
    dumps, _ = flight_data.make(flight_jobs.one_group(4, 6), flight_data.Fault("dead", (2,)))
    seen = timeline(tmp_path, dumps, states=(RankState(rank=2, alive=False, exit_code=1),))

    assert [("2", ())] == [(lane.ranks, lane.calls) for lane in seen.lanes if not lane.calls]
    assert seen.parted in {call.seq for lane in seen.lanes for call in lane.calls if call.open}


def test_a_job_that_goes_on_has_not_parted(tmp_path):
    """Its ranks are not equally far when the dumps are taken."""
    dumps, _ = flight_data.make(flight_jobs.one_group(4, 20), in_flight=True)
    folder = flight_data.write(tmp_path, dumps, age=0.1)
    seen = analyse(folder, moving=True, timeline=True).timeline

    assert seen.parted is None
    assert not any(call.odd for lane in seen.lanes for call in lane.calls)


def test_many_lanes_are_bounded(tmp_path):
    """Each of 100 ranks is elsewhere; the culprits stay, a note tells what is left out."""
    dumps = {}
    for number in range(100):
        events = [flight_cases.done("all_reduce", [[number + 1]], seq=seq) for seq in range(1, 4)]
        dumps[number] = flight_cases.dump(number, events, 100)
    found = analyse(flight_data.write(tmp_path, dumps), timeline=True)

    assert 64 == len(found.timeline.lanes)
    assert "the time line leaves out 36 ranks in 36 lanes" in found.notes


def test_names_in_dumps_are_made_safe(tmp_path):
    """Whoever wrote them."""
    events = [flight_cases.done(HOSTILE)]
    seen = timeline(tmp_path, {n: flight_cases.dump(n, events, 2) for n in range(2)})
    text = json.dumps(msgspec.to_builtins(seen))

    assert not [bad for bad in ("\\u001b", "\\u202e", "\\n", "hf_abc", "x" * 300) if bad in text]


# The glance.


@pytest.fixture
def run(tmp_path):
    glancing._watched.clear()
    return RunFolder.make(tmp_path)


def entry(**more):
    known = {"running": True, "pid": os.getpid(), "kernel": "k", "number": 3, "begun": time.time() - 60, "source": ""}
    return cell_journal.LastCell(**{**known, **more})


def record(run, number, pid, completed=4, **more):
    group = Group(name="0", enqueued=5, completed=completed)
    known = {"pid": pid, "host": socket.gethostname(), "alive": True, "time": time.time(), "world_size": 2}
    run.save_record(RankState(rank=number, groups=(group,), **{**known, **more}))


def clock(monkeypatch, seconds):
    monkeypatch.setattr(glancing.time, "monotonic", lambda: seconds)


def test_glances_tell_that_ranks_stand_still(run, monkeypatch):
    """From records alone: the first can't, one some seconds later can; a counter that moves denies it."""
    cell, me = entry(), os.getpid()
    record(run, 0, me)
    looks = []
    for seconds, completed in ((100.0, 4), (102.0, 4), (106.0, 4), (107.0, 5)):
        record(run, 0, me, completed)
        clock(monkeypatch, seconds)
        looks.append(glancing.glance(run, cell, me))

    assert [None, None, True, False] == [look.hangs for look in looks]
    assert "rank 0 waits in collective #5" == looks[2].line
    assert "outside" == looks[2].road
    assert 3 == looks[2].cell.number
    assert 60 <= looks[2].cell.seconds < 90


def test_a_glance_forgets_what_earlier_jobs_left(run):
    """Ranks that ended before the cell began; one that has ended since is gone."""
    never = 2**22 + 1
    record(run, 0, never, time=time.time() - 500)
    record(run, 1, never + 1, time=time.time() - 5)

    assert [(1, "gone")] == [(row.rank, row.state) for row in glancing.glance(run, entry(), os.getpid()).rows]


@pytest.mark.parametrize("cell", [None, entry(running=False)])
def test_a_glance_at_an_idle_kernel_tells_nothing(run, cell):
    """No cell runs, so nothing can hang."""
    seen = [glancing.glance(run, cell, os.getpid()) for _ in range(2)]

    assert [(None, None, "")] * 2 == [(look.hangs, look.cell, look.line) for look in seen]


def test_a_glance_at_a_kernel_that_is_not_armed_or_gone():
    """There is nothing to read."""
    assert () == glancing.glance(None, None, 2**22 + 1).rows


def test_a_glance_asks_nobody(run, monkeypatch):
    """Neither signals nor requests, and the folder stays as it is."""
    record(run, 0, os.getpid())
    before = {path: path.stat().st_mtime_ns for path in Path(run.path).rglob("*")}

    def refused(*_):
        raise AssertionError

    monkeypatch.setattr(os, "kill", refused)
    monkeypatch.setattr(RunFolder, "request", refused)
    glancing.glance(run, entry(), os.getpid())

    assert before == {path: path.stat().st_mtime_ns for path in Path(run.path).rglob("*")}


@pytest.mark.parametrize(("each", "said"), [("time.sleep(60)", True), ("sum(range(3_000_000)); time.sleep(.1)", None)])
def test_ranks_without_records_rest_where_none_uses_a_processor(each, said, monkeypatch):
    """Longer than a limit; ranks that take a little for each step do not rest."""
    monkeypatch.setattr(glancing, "_RESTS", 2.0)
    rank = f"import time\nwhile True: {each}"
    code = (
        "import os, subprocess, sys\nranks = [subprocess.Popen([sys.executable, '-c', sys.argv[1]],"
        " env={**os.environ, 'RANK': str(n), 'WORLD_SIZE': '2'}) for n in range(2)]\nfor each in ranks: each.wait()"
    )
    kernel = subprocess.Popen([sys.executable, "-c", code, rank], start_new_session=True)
    try:
        end = time.monotonic() + 60
        while len((seen := glancing.glance(None, None, kernel.pid)).rows) < 2 and time.monotonic() < end:
            time.sleep(0.1)
        end = time.monotonic() + (60 if said else 4)
        while not (seen := glancing.glance(None, None, kernel.pid)).hangs and time.monotonic() < end:
            time.sleep(0.5)
    finally:
        os.killpg(kernel.pid, signal.SIGKILL)
        kernel.wait()

    assert said is seen.hangs
    assert bool(said) is bool(re.fullmatch(r"ranks 0-1 used no processor for \d+ s", seen.line))
