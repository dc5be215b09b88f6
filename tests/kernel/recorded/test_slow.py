"""`dtdebug slow`: traces of several ranks, as torch.profiler writes them, to who is late and in which phase."""

import gzip
import json
from pathlib import Path

import pytest

from dtdebug.cli.main import main as dtdebug
from dtdebug.cli.slow import picture, run
from dtdebug.errors import UsageError
from dtdebug.recorded.profiler_traces.time_account import RankTimeline, _lasts, account, late
from dtdebug.recorded.profiler_traces.trace_steps import steps
from dtdebug.recorded.profiler_traces.traces import load, paths


def event(name, begin, length, cat="cpu_op", tid=1):
    return {"ph": "X", "cat": cat, "name": name, "pid": 7, "tid": tid, "ts": begin, "dur": length}


def host(rank, load=100, steps=4, loop=1000):
    """A rank that loads for `load` microseconds of each step and waits in gloo for the rest."""
    rows = [{"ph": "M", "name": "process_name", "pid": 7, "ts": 0, "args": {}}]
    for n in range(steps):
        at = 5_000_000 * (rank + 1) + n * loop  # each host has a clock of its own
        rows += [
            event(f"ProfilerStep#{n}", at, loop, "user_annotation"),
            event("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at, load, "user_annotation"),
            event("aten::randn", at + 1, load - 2),
            event("aten::mm", at + load, 100),
            event("gloo:all_reduce", at + load + 100, loop - load - 200, "user_annotation", tid=2),
            event("Optimizer.step#SGD.step", at + loop - 90, 80, "user_annotation"),
        ]
    return {"schemaVersion": 1, "distributedInfo": {"rank": rank, "world_size": 4}, "traceEvents": rows}


def write(folder, documents, packed=False):
    for n, document in enumerate(documents):
        raw = json.dumps(document).encode()
        name = folder / (f"trace-{9 - n}.json.gz" if packed else f"trace-{9 - n}.json")
        name.write_bytes(gzip.compress(raw) if packed else raw)
    return folder


@pytest.mark.parametrize("packed", [False, True])
def test_the_late_rank_and_its_phase_are_named(tmp_path, packed):
    """The one that loads for long is late; the others only show that they wait."""
    write(tmp_path, [host(0), host(1), host(2, load=700), host(3)], packed=packed)
    text, found = run([tmp_path], as_json=True)
    told = json.loads(text)
    assert found
    assert (told["late"]["ranks"], told["late"]["phase"], told["late"]["symptom"]) == ([2], "loader", "D.2.3")
    assert [row["rank"] for row in told["ranks"]] == [0, 1, 2, 3]
    one = told["ranks"][0]
    assert one["exposed_communication"] == pytest.approx(4 * 690e-6, rel=0.05)
    assert one["compute"] == pytest.approx(4 * 180e-6, rel=0.05)
    assert one["steps"] == 4


def test_ranks_that_fare_alike_have_nobody_late(tmp_path):
    """Everybody waits a little for everybody."""
    write(tmp_path, [host(0, load=100), host(1, load=130), host(2, load=90)])
    text, found = run([tmp_path], as_json=False)
    assert not found
    assert text.startswith("No rank is late")
    assert "~" in text


def test_a_rank_that_is_held_up_once_is_not_late(tmp_path):
    """It compiles or saves in one step of eight, which is most of the time; one that is so in each is late."""
    documents = [host(rank, steps=8, loop=1000) for rank in (0, 1)]
    for document, (name, tid) in zip(documents, (("gloo:all_reduce", 2), ("aten::mm", 1)), strict=True):
        rows = document["traceEvents"]
        at = rows[1]["ts"]
        for row in rows[1:]:
            row["ts"] += 20_000 * (row["ts"] >= at + 1000)
        rows[1]["dur"] = 21_000
        rows.append(event(name, at + 1000, 20_000, "cpu_op", tid))
    write(tmp_path, documents)
    assert json.loads(run([tmp_path], as_json=True)[0])["late"] is None


@pytest.mark.parametrize(("left", "late_then"), [(1.0, True), (500.0, False)])
def test_what_is_left_after_the_last_step_is_no_step(left, late_then):
    """Rank 0 is late in three of five steps; a whole sixth one in which it is not makes that half of them."""
    away, with_it, alike = (1000, 0, 100, 0), (1000, 600, 100, 0), (1000, 300, 300, 0)

    def line(rank, parts):
        return RankTimeline(rank=rank, span=6000, compute=(), communication=(), loader=(), parts=tuple(parts))

    rest = (left, 0, 0, 0)
    lines = [line(0, [away] * 3 + [alike] * 2 + [rest]), line(1, [with_it] * 3 + [alike] * 2 + [rest])]
    assert _lasts(0, "idle", lines) is late_then


@pytest.mark.parametrize("load", [800, 450])
def test_a_loader_that_is_slow_everywhere_holds_up_all(tmp_path, load):
    """Nobody is late, and all wait; also where one rank does a little more of everything."""
    busier = host(1, load=load + 40)
    for row in busier["traceEvents"][1:]:
        row["dur"] += {"gloo:all_reduce": -90, "aten::mm": 50}.get(row["name"], 0)
    write(tmp_path, [host(0, load=load), busier])
    told = json.loads(run([tmp_path], as_json=True)[0])
    assert told["late"]["ranks"] == [0, 1]
    assert told["late"]["phase"] == "loader"
    assert told["late"]["others"] is None


def test_on_a_device_kernels_count_and_overlap_is_not_exposed(tmp_path):
    """Communication beside computation costs nothing; what the host does says nothing of the device."""

    def gpu(rank, compute, wait):
        rows = [event("ProfilerStep#1", 0, 1000, "user_annotation"), event("aten::mm", 0, 900)]
        rows += [
            event("gemm", 0, compute, "kernel", 7),
            event("ncclDevKernel_AllReduce", compute - 50, wait, "kernel", 8),
        ]
        return {"distributedInfo": {"rank": rank}, "traceEvents": rows}

    write(tmp_path, [gpu(0, 300, 600), gpu(1, 800, 100)])
    traces = load(paths([tmp_path]))
    accounts = [account(trace, steps(traces)[0][trace.rank])[0] for trace in traces]
    assert accounts[0].on == "device"
    assert accounts[0].exposed_communication == pytest.approx(550e-6)
    assert accounts[1].exposed_communication == pytest.approx(50e-6)
    assert late(accounts).ranks == (1,)
    assert late(accounts).phase == "compute"


def test_a_cut_trace_is_read_as_far_as_it_goes(tmp_path):
    """The job was killed while it wrote."""
    write(tmp_path, [host(0), host(1, load=700)])
    path = next(tmp_path.glob("trace-8*"))
    raw = path.read_bytes()
    path.write_bytes(raw[: len(raw) * 2 // 3])
    told = json.loads(run([tmp_path], as_json=True)[0])
    assert any("is cut" in note for note in told["notes"])
    assert told["late"]["ranks"] == [1]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is not a trace"),
        (b"[" * 100_000, "no event"),
        (b'{"traceEvents": [1, null, {"ph": "X"}]}', "no event with a duration"),
        (b'{"traceEvents": [{"name": "x", "ts": 1e300, "dur": 1e300}]}', "no event"),
        (b"\x1f\x8bnonsense", "damaged"),
        (b'{"schemaVersion": 1}', "is not a trace"),
    ],
)
def test_what_is_no_trace_is_one_line(tmp_path, content, words):
    """It says which file, and what is wrong."""
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=words) as raised:
        run([path], as_json=False)
    assert "bad.json" in str(raised.value)


def test_an_archive_that_grows_without_end_is_refused(tmp_path, monkeypatch):
    """A few bytes may unpack to any number."""
    monkeypatch.setattr("dtdebug.recorded.profiler_traces.traces._HEAD", 1 << 20)
    (tmp_path / "bomb.json.gz").write_bytes(gzip.compress(b" " * (8 << 20)))
    with pytest.raises(UsageError, match="is not a trace"):
        run([tmp_path], as_json=False)


def test_names_in_a_trace_do_not_reach_the_terminal_as_they_are(tmp_path):
    """Neither escapes nor files' names steer it."""
    document = host(0)
    document["traceEvents"][1]["name"] = "ProfilerStep#\x1b[31m0"
    write(tmp_path, [document, host(0)])
    text, _ = run([tmp_path], as_json=False)
    assert "\x1b" not in text
    assert "does not say its rank, or another says the same" in text


def test_each_column_of_the_picture_shows_what_took_most_of_it(tmp_path):
    """Loading, then communicating."""
    write(tmp_path, [host(0, load=500, steps=1)])
    traces = load(paths([tmp_path]))
    _, line = account(traces[0], steps(traces)[0][0])
    drawn = picture(line, line.span, 20)
    assert len(drawn) == 20
    assert drawn.startswith("LLLLLLLL")
    assert drawn.count("~") >= 5


def test_what_waits_inside_an_operator_is_not_computing(tmp_path):
    """An optimizer that communicates in its step, as ZeRO's, and the wait for a functional collective."""
    rows = [
        event("Optimizer.step#LBFGS.step", 0, 1000, "user_annotation"),
        event("aten::mm", 0, 100),
        event("CompiledFunctionBackward", 200, 700),
        event("c10d::allreduce_", 210, 10),
        event("_c10d_functional::wait_tensor", 220, 600),
        event("gloo:all_reduce", 215, 600, "user_annotation", 2),
    ]
    write(tmp_path, [{"distributedInfo": {"rank": 0}, "traceEvents": rows}])
    row = json.loads(run([tmp_path], as_json=True)[0])["ranks"][0]
    assert (1e-4, 6e-4) == (pytest.approx(row["compute"]), pytest.approx(row["exposed_communication"]))


OP, BACK, STEP = "aten::mm", "autograd::engine::evaluate_function: MmBackward0", "Optimizer.step#SGD.step"
NEXT = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


@pytest.mark.parametrize(
    ("once", "number", "how"),
    [
        ([OP, BACK, OP, BACK, STEP], 6, "optimizer steps"),  # two backward passes: accumulation
        ([OP, BACK, STEP, STEP], 6, "optimizer steps"),  # two optimizers
        ([STEP], 6, "optimizer steps"),
        ([NEXT, OP], 6, "iterations of a data loader"),
        (["aten::embedding", OP, "c10d::allreduce_", OP, "c10d::allreduce_"], 6, "operators that repeat"),
        ([OP], None, ""),  # each may be a step, or a layer of one
    ],
)
def test_steps_are_counted_without_the_profilers_step(tmp_path, once, number, how):
    """By what the program has done once in each; how is said, and nothing where that is not known."""

    def trace(rank):
        names = [*once * 6, *([NEXT] if NEXT in once else [])]
        kinds = {STEP: "user_annotation", NEXT: "user_annotation"}
        rows = [event(name, 100 * n, 90, kinds.get(name, "cpu_op")) for n, name in enumerate(names)]
        return {"distributedInfo": {"rank": rank}, "traceEvents": rows}

    write(tmp_path, [trace(0), trace(1)])
    told = json.loads(run([tmp_path], as_json=True)[0])
    assert [number or 0] * 2 == [row["steps"] for row in told["ranks"]]
    assert how == told["steps_by"]
    if number:
        assert told["ranks"][0]["step_seconds"] == pytest.approx(len(once) * 1e-4)


def test_an_annotation_of_the_program_names_its_steps(tmp_path):
    """Before its optimizers: a step of this program has two of them, with a backward pass each."""
    rows = [event("## train_step ##", 1000 * n, 900, "user_annotation") for n in range(4)]
    rows += [event(name, 500 * n + at, 90) for n in range(8) for at, name in ((0, BACK), (100, STEP))]
    write(tmp_path, [{"distributedInfo": {"rank": 0}, "traceEvents": rows}])
    text, _ = run([tmp_path], as_json=False)
    assert "   0      4   0.001" in text
    assert "steps are annotations of the program that name them" in text


def test_the_command_says_by_its_status_whether_somebody_is_late(tmp_path, capsys):
    """1: something was found; 2: wrong use."""
    write(tmp_path, [host(0), host(1, load=700)])
    assert dtdebug(["slow", str(tmp_path)]) == 1
    assert "Rank 1 is late" in capsys.readouterr().out
    assert dtdebug(["slow", str(Path(tmp_path) / "nothing")]) == 2
    assert "is neither a file nor a folder" in capsys.readouterr().err
