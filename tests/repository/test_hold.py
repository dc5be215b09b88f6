"""Hostile input of every kind is held: bounded memory, no internal error, nothing shown of a file that is no source.

`make attack` runs the kinds at full size, from the seed in DTDEBUG_SEED; a share of them, small, is in every run.
"""

from __future__ import annotations

import ast
import gzip
import itertools
import json
import os
import random
import resource
import signal
import subprocess
import sys
import zlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import hostile_kinds as kinds
import pytest

import dtdebug
import dtdebug_lsp
from dtdebug.check import examine_file
from dtdebug.cli import limits
from dtdebug.cli import main as command
from dtdebug.cli.main import main
from dtdebug.live.probe.pyspy_output import frame_of
from dtdebug.recorded.flight_recorder import analyse
from dtdebug.recorded.job_logs import streams, workers
from dtdebug.recorded.job_logs.rank_from_path import LogOwner
from dtdebug.recorded.job_logs.reduce import NoCollector, part_of
from dtdebug.recorded.log_files import sources
from dtdebug.recorded.log_files.sources import LogSource
from dtdebug.recorded.stack_texts import rounds
from dtdebug.storage import budget, command_timer, state_dir
from dtdebug.storage.run_archive import UnpackError, unpack
from dtdebug_taxonomy import named_files

LONG = bool(os.environ.get("DTDEBUG_ATTACK"))
SEED = int(os.environ.get("DTDEBUG_SEED", "45"))
PATIENCE = 120.0
SPACE, RESIDENT = 2 << 30, 1 << 30


@pytest.mark.parametrize("kind", kinds.KINDS)
def test_whatever_the_kind_it_is_held(tmp_path: Path, kind: str) -> None:
    make, small, large = kinds.KINDS[kind]
    folder = tmp_path / "given"
    folder.mkdir()
    words = make(random.Random(SEED * 1_000_003 + zlib.crc32(kind.encode())), folder, large if LONG else small)
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    done = subprocess.run(
        [sys.executable, "-m", "dtdebug", *words],
        stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE, check=False, cwd=folder,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (SPACE, SPACE)),
    )  # fmt: skip
    said = done.stdout + done.stderr

    assert done.returncode in (0, 1, 2), said
    assert b"internal error" not in said
    assert kinds.SECRET.encode() not in said
    largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss  # of all children, those of other tests included
    assert largest == before or largest << 10 < RESIDENT
    if kind.startswith("frames of a dump"):
        assert b"Rank 5 never called all_reduce" in said
    for archive in folder.glob("dtdebug-*.tar.gz"):
        assert kinds.SECRET.encode() not in gzip.decompress(archive.read_bytes())


def test_many_hostile_dumps_cost_what_a_few_do_and_the_rest_is_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spent = budget.Budget()
    monkeypatch.setattr(budget, "_running", [spent])
    kinds.fr.write(tmp_path, kinds.job(tmp_path))
    for rank in range(8, 40):
        (tmp_path / f"rank_{rank}").write_bytes(kinds.colliding(rank, 60_000))
    found = analyse(tmp_path)
    told = [note for note in found.notes if "more dumps were not read" in note]

    assert spent.seconds <= 0
    assert 5 in found.verdict.culprits
    assert len(told) == 1
    assert int(told[0].split()[0]) > 20


def test_compressed_files_share_what_they_unpack_to_beyond_the_usual(monkeypatch: pytest.MonkeyPatch) -> None:
    spent = budget.Budget()
    monkeypatch.setattr(budget, "_running", [spent])
    budget.Allowance(1000).take(30_000)
    assert spent.unpacked == budget.Budget().unpacked
    budget.Allowance(0).take(spent.unpacked - 5)
    with pytest.raises(OSError, match="unpacks to more than"):
        budget.Allowance(0).take(6)


def test_memory_that_json_takes_is_known_before_it_is_read() -> None:
    for piece, size in ((b"{},", 64), (b"[],", 56), (b'{"a":1},', 184), (b"[[[[]]]],", 4 * 64)):
        assert budget.json_memory(piece * 1000) >= 1000 * size


def test_a_bomb_in_members_that_nobody_wants_ends_at_the_budget(tmp_path: Path) -> None:
    info = kinds.tarfile.TarInfo("run/else")
    info.size = 1 << 40
    kinds.gzipped((b"\0" * (1 << 20) if n else info.tobuf() for n in range(400)), tmp_path / "a.tar.gz")
    with pytest.raises(UnpackError, match="unpacks to more than"):
        unpack(tmp_path / "a.tar.gz", tmp_path)


# The door.

OPENERS = {"open", "read_text", "read_bytes", "getline", "getlines", "checkcache", "fdopen"}
OWN = {
    # Modules that open files by name, and whose names those are; any other has to use `named_files` or `safe_open`.
    "ours": (
        "storage/*", "learn/*", "learn/labs/*", "privacy/redact/*", "cli/main", "__main__", "live/hosts/presence",
        "experiments/*/inside/*", "bootstrap/*",
        "experiments/collectives/rehearse", "live/job/output_store", "live/job/relay", "live/job/report",
        "notebook/cell_journal", "doctor/meet/*", "doctor/host/resources", "doctor/host/throughput", "wizard/terminal",
        "experiments/isolate/*", "experiments/resume/runs", "live/agent/fatal_signals", "notebook/instrument_cell",
        "check/result_cache",
    ),
    "of /proc, /sys and /etc": (
        "live/procfs/*", "live/hosts/tcp_sockets", "live/probe/*", "live/job/run_job", "live/job/progress",
        "doctor/host/*", "experiments/invariants/inside/phases", "recorded/flight_recorder/sandbox",
        "live/job/running_jobs", "notebook/extension",
    ),
    "of code that runs in this process": (
        "live/agent/own_frames", "live/probe/adapters/__init__", "notebook/cells",
        "account/sources",
    ),
    "doors of their own kind": (
        "recorded/log_files/*", "recorded/flight_recorder/load_dump", "recorded/profiler_traces/traces",
    ),
    "of the editor's state": ("handoff", "server", "documents"),
}  # fmt: skip


def test_a_python_that_we_start_imports_nothing_from_the_folder_it_starts_in() -> None:
    found = []
    for package in (dtdebug, dtdebug_lsp):
        for path in Path(package.__file__ or "").parent.rglob("*.py"):
            if "notebooks" in path.parts:
                continue
            for node in ast.walk(ast.parse(path.read_bytes())):
                words = [ast.unparse(word) for word in node.elts] if isinstance(node, ast.List | ast.Tuple) else []
                for python, option in itertools.pairwise(words):
                    if python == "sys.executable" and option.startswith("'-") and option not in ("'-P'", "'-I'"):
                        found.append(f"{path.name}:{node.lineno}")

    assert not found


def test_no_other_module_opens_a_file_by_its_name() -> None:
    allowed = [name for names in OWN.values() for name in names]
    found = []
    for package in (dtdebug, dtdebug_lsp):
        root = Path(package.__file__ or "").parent
        for path in root.rglob("*.py"):
            name = str(path.relative_to(root).with_suffix(""))
            if any(Path(name).match(pattern) for pattern in allowed) or "notebooks/" in name:
                continue
            for node in ast.walk(ast.parse(path.read_bytes())):
                if isinstance(node, ast.Call):
                    called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                    owner = getattr(getattr(node.func, "value", None), "id", "")
                    given = any(keyword.arg == "fileobj" for keyword in node.keywords)
                    if called in OPENERS and not given and owner not in ("safe_open", "named_files", "documents"):
                        found.append(f"{name}:{node.lineno} {owner}.{called}")
    assert not found, found


@pytest.mark.parametrize("kind", [name for name in kinds.SPECIAL if name not in ("nul", "folder")])
def test_nothing_special_is_read_as_source(tmp_path: Path, kind: str) -> None:
    named = kinds.SPECIAL[kind](tmp_path / "src")
    assert named_files.read_source(named) is None
    assert not named_files.source_line(named, 3, anywhere=True)


def test_source_is_shown_where_the_user_works_and_nowhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    for folder in (here, elsewhere):
        folder.mkdir()
        (folder / "train.py").write_text("import torch\nloss = 1\n")
    (here / "linked.py").symlink_to(elsewhere / "train.py")
    monkeypatch.chdir(here)
    monkeypatch.setattr(named_files, "_given", ())

    assert named_files.source_line(here / "train.py", 2) == "loss = 1"
    assert not named_files.source_line(here / "train.py", 3)
    assert not named_files.source_line(elsewhere / "train.py", 2)
    assert not named_files.source_line(here / "linked.py", 2)
    assert named_files.source_line(elsewhere / "train.py", 2, anywhere=True) == "loss = 1"
    named_files.give_roots([str(elsewhere)])
    assert named_files.source_line(elsewhere / "train.py", 2) == "loss = 1"


def test_what_a_running_process_has_on_its_stack_is_shown_wherever_it_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, program = tmp_path / "here", tmp_path / "elsewhere" / "train.py"
    for folder in (here, program.parent):
        folder.mkdir()
    program.write_text("import torch\nloss = 1\n")
    monkeypatch.chdir(here)
    monkeypatch.setattr(named_files, "_given", ())
    monkeypatch.setattr(named_files, "_running", set())

    assert not frame_of(str(program), 2, "f").code
    assert frame_of(str(program), 2, "f", live=True).code == "loss = 1"
    assert named_files.read_shown_source(program) == program.read_bytes()
    assert not named_files.is_shown(program.parent / "other.py")


@pytest.mark.parametrize("words", [["diagnose", "{0}/job.log"], ["triage", "{0}"]])
def test_the_source_beside_a_log_that_lies_elsewhere_is_shown(tmp_path: Path, words: list[str]) -> None:
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    for folder in (here, elsewhere):
        folder.mkdir()
    program = elsewhere / "train.py"
    program.write_text("import torch\nraise ValueError('bad shard')\n")
    (elsewhere / "job.log").write_text(
        "[rank0]: Traceback (most recent call last):\n"
        f'[rank0]:   File "{program}", line 2, in <module>\n[rank0]: ValueError: bad shard\n'
    )
    done = subprocess.run(
        [sys.executable, "-m", "dtdebug", *(word.format(elsewhere) for word in words)],
        stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE, check=False, cwd=here, text=True,
        env={**os.environ, "DTDEBUG_STATE": str(tmp_path / "state")},
    )  # fmt: skip
    assert "raise ValueError('bad shard')" in done.stdout


def test_the_source_of_a_program_that_is_run_and_lies_elsewhere_is_shown(tmp_path: Path) -> None:
    here, program = tmp_path / "here", tmp_path / "elsewhere" / "train.py"
    for folder in (here, program.parent):
        folder.mkdir()
    program.write_text("def load(n):\n    raise ValueError(f'bad shard {n}')\n\n\nload(3)\n")
    done = subprocess.run(
        [sys.executable, "-m", "dtdebug", "run", "--", sys.executable, str(program)],
        stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE, check=False, cwd=here, text=True,
        env={**os.environ, "DTDEBUG_STATE": str(tmp_path / "state"), "RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"},
    )  # fmt: skip
    said = (done.stdout + done.stderr).partition("dtdebug: ")[2]
    assert "raise ValueError(f'bad shard {n}')" in said


def test_a_file_system_that_does_not_answer_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def late(_action: object) -> None:
        raise TimeoutError

    (tmp_path / "train.py").write_text("loss = 1\n")
    monkeypatch.setattr(named_files, "_in_time", late)
    monkeypatch.setattr(named_files, "_silent", set())
    assert named_files.read_source(tmp_path / "train.py") is None
    monkeypatch.undo()
    assert named_files.read_source(tmp_path / "train.py") == b"loss = 1\n"


def test_a_trace_of_unknown_events_clears_no_rank(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = kinds.trace(kinds.UNKNOWN_EVENT, packed=True)(random.Random(1), tmp_path, 4000)
    assert main(words) == 1
    assert capsys.readouterr().out.startswith("Not understood: 2 traces")
    assert main([*words, "--format", "json"]) == 1
    assert json.loads(capsys.readouterr().out)["late"] is None


def test_a_log_that_takes_far_longer_than_its_size_is_left_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DTDEBUG_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(budget, "_PER_BYTE", 0.0)
    monkeypatch.setattr(budget.Budget, "allow", lambda *_: None)
    lines = "".join(f"(Worker pid={n}, ip=10.0.0.1) boom\n" for n in range(2000))
    (tmp_path / "job.log").write_text(lines)
    (tmp_path / "other.log").write_text(lines)
    asked = iter(range(1 << 30))
    monkeypatch.setattr(budget.Budget, "is_late", lambda _: next(asked) > 40)
    assert main(["triage", "--full", "--processes", "1", str(tmp_path / "job.log"), str(tmp_path / "other.log")]) in (
        0,
        1,
    )
    said = " ".join(capsys.readouterr().out.split())
    assert "of 2000 printer" in said
    assert next(asked) < 100


@pytest.mark.parametrize("bound", ["printers", "time"])
@pytest.mark.parametrize("given", [["job.log"], ["job.log", "launcher.log"]])
def test_where_not_all_printers_are_read_no_rank_is_named_and_nothing_is_cleared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], bound: str, given: list[str]
) -> None:
    """Of four ranks the first two are read: that the third printed no time-out, or raised first, is not known."""
    monkeypatch.setenv("DTDEBUG_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(streams, "_PRINTERS", 2 if bound == "printers" else 1 << 14)
    asked = itertools.cycle((False, False, True))
    monkeypatch.setattr(budget.Budget, "is_late", lambda _: bound == "time" and next(asked))
    steps = "".join(f"[rank{r}]: 2026-03-01 10:00:{s:02} step {s} loss 1.0\n" for s in range(1, 9) for r in range(4))
    waits = "[rank{0}]: [Rank {0}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE, "
    waits += "NumelIn=4, NumelOut=4, Timeout(ms)=600000) ran for 600095 milliseconds before timing out.\n"
    raised = '[rank{0}]: Traceback (most recent call last):\n[rank{0}]:   File "/a/t.py", line 3, in f\n'
    raised += "[rank{0}]: ValueError: bad\n"
    (tmp_path / "launcher.log").write_text("launcher: starting 4 processes\n")
    for shown in ("", "".join(waits.format(r) for r in (0, 1, 3)), "".join(raised.format(r) for r in (1, 2))):
        (tmp_path / "job.log").write_text(steps + shown)
        status = main(["diagnose", *given])
        said = " ".join(capsys.readouterr().out.split())
        assert status == 1
        assert "of 4 printers" in said
        if len(given) > 1 or shown.startswith("[rank0]"):
            assert "Rank 1 " not in said
            assert "Rank 2 " not in said


@pytest.mark.parametrize(
    "message", ["RuntimeError: NCCL error", "my.own.ShardError: no such shard", "KeyboardInterrupt"]
)
def test_logs_that_end_in_an_exception_that_nothing_explains_are_not_called_healthy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], message: str
) -> None:
    monkeypatch.setenv("DTDEBUG_STATE", str(tmp_path / "state"))
    for rank in range(3):
        (tmp_path / f"rank{rank}.log").write_text(f"step 1 loss 2.0\nstep 2 loss 1.9\n{message}\n")
    assert main(["triage", "--processes", "1", str(tmp_path)]) == 1
    assert "no rank failed" not in capsys.readouterr().out
    for rank in range(3):
        (tmp_path / f"rank{rank}.log").write_text(f"step 1 loss 2.0\n{message}\nstep 2 loss 1.9\nstep 3 loss 1.9\n")
    assert main(["triage", "--processes", "1", str(tmp_path)]) == 0


@pytest.mark.parametrize("time", [1e300, -1e18, 1e12])
def test_a_summary_of_logs_is_read_in_bounded_memory_whatever_its_times(tmp_path: Path, time: float) -> None:
    told = f'[[3,"ValueError: x",{time},{time}]]'
    stream = '{{"file":"r{0}.log","rank":{0},"host":"h{0}","began":{1},"last":{1},"first":{1},"line":3,"told":{2}}}'
    for n in range(2):
        made = stream.format(n, time, told)
        (tmp_path / f"part-{n}.json").write_text(f'{{"files":1,"streams":[{made}],"read":["r{n}.log"]}}\n')
    done = subprocess.run(
        [sys.executable, "-m", "dtdebug", "triage", "--full", *map(str, tmp_path.glob("*.json"))],
        stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE, check=False, text=True,
        env={**os.environ, "DTDEBUG_STATE": str(tmp_path / "state")},
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "2 ranks on 2 hosts" in done.stdout
    assert "internal error" not in done.stderr


def test_times_that_no_calendar_has_end_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = random.Random(SEED)
    shown = ("9999-12-31 23:59:59.9", "0001-01-01 00:00:00", "1970-01-01 00:00:00+99:99", "0000-00-00 00:00:00")
    rows = (f"[rank{n % 8}]: {rng.choice(shown)} step {n} loss {rng.random()}\n" for n in range(2000))
    (tmp_path / "job.log").write_text("".join(rows))
    assert main(["triage", str(tmp_path / "job.log")]) in (0, 1)
    assert "internal error" not in capsys.readouterr().err


def test_stacks_of_too_many_processes_are_read_in_part_and_name_no_rank(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(rounds, "_PROCESSES", 3)
    process = 'Process {0}: python -u train.py\nPython v3.11\n\nThread {0} (idle): "MainThread"\n'
    reduce = "    all_reduce (torch/distributed/distributed_c10d.py:2800)\n    step (train.py:9)\n\n"
    (tmp_path / "stacks.txt").write_text(
        "".join(process.format(n) + ("    load (train.py:5)\n\n" if n == 11 else reduce) for n in range(10, 16))
    )
    assert main(["diagnose", "--format", "json", str(tmp_path / "stacks.txt")]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["verdict"]["culprits"] == []
    assert "left out: 3 of 6 processes" in " ".join(found["notes"])


def test_time_that_reading_logs_takes_grows_with_their_size_once_for_each() -> None:
    spent = budget.Budget()
    before = spent._allowed
    spent.allow("a.log", 10 << 20)
    spent.allow("a.log", 10 << 20)
    assert 1 < spent._allowed - before < 10
    assert not spent.is_late()
    with budget.one_command(waits=True):
        budget.current()._began -= 1e6
        assert not budget.current().is_late(), "the hours of a job are no time that reading took"
    spent._allowed = -1.0
    with pytest.raises(OSError, match="far longer"):
        spent.check_time()


@pytest.mark.parametrize("size", [-1, 1 << 62, 1 << 86])
def test_a_member_of_an_impossible_size_is_told_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], size: int
) -> None:
    info = kinds.tarfile.TarInfo("a.log")
    info.size = size
    (tmp_path / "a.tar").write_bytes(info.tobuf(kinds.tarfile.GNU_FORMAT) + b"\0" * 2048)
    assert main(["diagnose", str(tmp_path / "a.tar")]) == 2
    assert "a size that no file has" in capsys.readouterr().err


def test_members_beyond_the_limit_are_told_and_the_first_ones_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "_MEMBERS", 3)
    with kinds.tarfile.open(tmp_path / "a.tar", "w") as tar:
        for n in range(5):
            tar.addfile(kinds.tarfile.TarInfo(f"rank_{n}.log"))
    found, unread = sources.find_logs([str(tmp_path / "a.tar")])
    assert [source.member for source in found] == ["rank_0.log", "rank_1.log", "rank_2.log"]
    assert "more than 3 members" in unread[0]


@pytest.mark.parametrize("words", [["triage", "/proc/kmsg"], ["triage", "**/" * 9 + "*.log"]])
def test_what_can_not_be_read_is_told_in_one_line(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    said = capsys.readouterr().err
    assert said.count("\n") <= 2
    assert "internal error" not in said


# The whole command.


def test_what_no_reader_bounds_ends_with_the_budget_of_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def read(_words: list[str]) -> int:
        while True:
            with suppress(Exception):  # no reader may drop it
                sum(range(1000))

    monkeypatch.setattr(budget, "_USUAL", 0.1)
    monkeypatch.setattr(budget, "_GRACE", 0.1)
    monkeypatch.setattr(command_timer, "_LOOK", 0.05)
    monkeypatch.setattr(command, "_answer", read)
    assert main(["diagnose", "x.log"]) == 2
    assert capsys.readouterr().err == f"dtdebug: {limits.TIME}\n"


@pytest.mark.parametrize("words", [["mcp"], ["lsp"], ["diagnose", "-"]])
def test_no_timer_wakes_what_waits_for_signals(monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
    monkeypatch.setattr(command, "_answer", lambda _words: signal.getitimer(signal.ITIMER_VIRTUAL)[1] > 0)
    assert not main(words)
    assert main(["diagnose", words[0]])  # a file of that name is no command


@pytest.mark.parametrize(
    ("error", "said"), [(MemoryError, "too much memory"), (command_timer.OverBudgetError, "too long")]
)
def test_the_logs_of_a_process_that_meets_its_limits_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: type, said: str
) -> None:
    def part(logs: Sequence[LogSource], whose: Sequence[LogOwner], collector: object) -> object:
        if any("rank1" in log.name for log in logs):
            raise error
        return part_of(logs, whose, NoCollector()), collector

    for rank in range(3):
        (tmp_path / f"rank{rank}.log").write_text(f"step 1 loss 1.0\n[rank{rank}]: ValueError: bad\n")
    monkeypatch.setattr(workers, "_part_of", part)
    monkeypatch.chdir(tmp_path)
    assert main(["triage", "--processes", "2", "--full", "."]) == 1
    assert f"rank1.log: takes {said}" in capsys.readouterr().out


def test_memory_that_other_modules_fill_is_freed_before_a_file_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "train.py"
    program.write_text("import torch.distributed as dist\nif dist.get_rank() == 0:\n    dist.barrier()\n")
    fails = [True, False, True, True]
    read = examine_file.examine

    def examine(*args: object, **more: object) -> object:
        if fails.pop(0):
            raise MemoryError
        return read(*args, **more)

    monkeypatch.setattr(examine_file, "examine", examine)
    assert examine_file.examine_file(program, examine_file.Selection()).findings
    (unread,) = examine_file.examine_file(program, examine_file.Selection()).unread
    assert "takes too much memory" in unread


def test_memory_that_no_reader_bounds_is_refused_in_one_line() -> None:
    code = (
        "import sys; from dtdebug.cli import main; main._answer = lambda words: len(bytearray(2 << 30));"
        "sys.argv = ['dtdebug', 'x.log']; main.run()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=PATIENCE, check=False, text=True)
    assert (done.returncode, done.stderr) == (2, f"dtdebug: {limits.MEMORY}\n")


@pytest.mark.parametrize("words", [["--version"], ["help"], ["explain", "D.2.1"], ["diagnose", "{0}/job.log"]])
def test_output_that_can_not_be_written_is_told_in_one_line(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "job.log").write_text("[rank0]: ValueError: bad\n")
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "dtdebug", *(word.format(tmp_path) for word in words)],
            stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE, timeout=PATIENCE, check=False, text=True,
            env={**os.environ, "DTDEBUG_STATE": str(tmp_path / "state")},
        )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == "dtdebug: can't go on: No space left on device"


@pytest.mark.parametrize("given", ["closed", "/proc/version"])
def test_standard_input_that_is_none_is_told_in_one_line(
    given: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with Path("/proc/version").open() as file:
        monkeypatch.setattr(sys, "stdin", None if given == "closed" else file)
        assert main(["diagnose", "-"]) == 2
    assert "standard input: is " in capsys.readouterr().err.splitlines()[-1]


def test_a_state_that_is_no_record_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DTDEBUG_STATE", str(tmp_path))
    os.mkfifo(tmp_path / "a.json")
    (tmp_path / "b.json").symlink_to("/dev/zero")
    (tmp_path / "c.json").write_text("[" * 500_000)
    assert [state_dir.load(name, list) for name in ("a.json", "b.json", "c.json")] == [None] * 3


def test_a_folder_deeper_than_names_may_be_long_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    at = os.open(tmp_path, os.O_RDONLY)
    for _ in range(300):
        os.mkdir("n" * 20, dir_fd=at)
        inner = os.open("n" * 20, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = inner
    os.close(at)
    (tmp_path / "train.py").write_text("import torch\n")
    status = main(["check", str(tmp_path)])
    subprocess.run(["rm", "-rf", *tmp_path.iterdir()], check=True, timeout=PATIENCE)
    said = capsys.readouterr().err
    assert status == 0
    assert "internal error" not in said
    assert "can't be read" in said
