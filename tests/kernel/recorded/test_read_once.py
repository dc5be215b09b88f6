"""A log is read once for all that looks at it; one table decides what leads; results are one vocabulary."""

import io
import json
import os
from collections import Counter
from pathlib import Path
from typing import get_args

import pytest

from dtdebug.cli.main import main
from dtdebug.errors import FOUND
from dtdebug.mcp import tool_answers
from dtdebug.recorded.curves.read import read_curves
from dtdebug.recorded.logs import Logs
from dtdebug.storage import safe_open
from dtdebug_taxonomy.explanations.leads import NUMERIC, Seen, subject_of
from dtdebug_taxonomy.model.ranks import Verdict
from dtdebug_taxonomy.model.status import Status

_HEADS = 3 * (64 << 10)
"""Bytes of the beginnings by which the kind of a file is recognised."""
FAILURE = (
    "[rank2]: Traceback (most recent call last):\n"
    '[rank2]:   File "/home/ann/train.py", line 31, in <module>\n'
    '[rank2]:     loss = step(batch["labels"])\n'
    "[rank2]: KeyError: 'labels'\n"
)


def steps(ranks, count, begin=0):
    return "".join(
        f"[rank{rank}]: 2026-03-01 10:{n // 60 % 60:02}:{n % 60:02} "
        f"step {n} loss={3 - n / (count + begin):.4f} lr=1e-4\n"
        for n in range(begin, begin + count)
        for rank in range(ranks)
    )


@pytest.fixture
def bytes_read(monkeypatch):
    """Bytes that were read of each file."""
    counts = Counter()
    open_file = safe_open.log

    class Counted(io.FileIO):
        def __init__(self, file, name):
            super().__init__(os.dup(file.fileno()), "rb")
            file.close()
            self.path = name

        def read(self, size=-1):
            data = super().read(size)
            counts[self.path] += len(data or b"")
            return data

        def readinto(self, buffer):
            size = super().readinto(buffer)
            counts[self.path] += size or 0
            return size

    monkeypatch.setattr(safe_open, "log", lambda path, **kinds: Counted(open_file(path, **kinds), str(path)))
    return counts


@pytest.mark.parametrize("command", ["diagnose", "triage"])
def test_a_failing_log_of_several_ranks_with_a_restart_is_read_once(command, tmp_path, bytes_read, capsys):
    """The answer, silent ranks, attempts and curves see the same pass."""
    log = tmp_path / "job.log"
    again = "[rank0]: 2026-03-01 10:20:00 resuming from checkpoint, attempt 2 [restart]\n"
    log.write_text(steps(8, 600) + FAILURE + again + steps(8, 600, 600) + FAILURE)
    size = log.stat().st_size
    assert size > 2 * _HEADS
    assert main([command, str(log)]) == FOUND
    assert size <= bytes_read[str(log)] <= size + _HEADS
    assert "labels" in capsys.readouterr().out


def test_the_logs_of_a_folder_are_read_once(tmp_path, bytes_read, capsys):
    for rank in range(4):
        (tmp_path / f"rank_{rank}.log").write_text(steps(1, 7000) + (FAILURE if rank == 2 else ""))
    assert main(["triage", str(tmp_path)]) == FOUND
    assert "KeyError" in capsys.readouterr().out
    for path, count in bytes_read.items():
        # the ends of several logs tell whether they are attempts
        assert count <= Path(path).stat().st_size + 2 * _HEADS, path


@pytest.mark.parametrize("processes", [1, 2])
def test_the_curves_of_one_pass_are_those_of_the_files(processes, tmp_path):
    for rank in range(3):
        (tmp_path / f"rank_{rank}.log").write_text(steps(1, 300 + rank))
    (tmp_path / "metrics.csv").write_text("step,loss\n" + "".join(f"{n},{3 - n / 100}\n" for n in range(50)))
    logs = Logs([str(tmp_path)], processes=processes)
    found = logs.curves_with()
    alone = read_curves([str(tmp_path)]).curves
    rows = {(c.owner, c.name.name): (list(c.steps), list(c.values), list(c.lines)) for c in found.curves}
    assert rows == {(c.owner, c.name.name): (list(c.steps), list(c.values), list(c.lines)) for c in alone}
    assert {len(steps) for steps, _, _ in rows.values()} >= {300, 301, 302, 50}
    assert logs.part.files >= 3


@pytest.mark.parametrize(
    ("seen", "subject"),
    [
        (Seen(), "nothing"),
        (Seen(curves=True), "curves"),
        (Seen(curves=True, happened=True), "end"),
        (Seen(curves=True, recognised=True, sources=frozenset({"printed"})), "end"),
        (Seen(curves=True, recognised=True, sources=frozenset({"said"})), "curves"),
        (Seen(recognised=True, sources=frozenset({"said"})), "message"),
        (Seen(curves=True, recognised=True, symptom=NUMERIC, sources=frozenset({"printed"})), "curves"),
        (
            Seen(
                curves=True,
                recognised=True,
                symptom=NUMERIC,
                sources=frozenset({"printed"}),
                verdict=Verdict(kind="dead", culprits=(1,)),
            ),
            "end",
        ),
        (Seen(curves=True, ranks=True), "ranks"),
        (Seen(curves=True, ranks=True, happened=True, attempts=True), "attempts"),
    ],
)
def test_one_table_decides_what_the_answer_is_about(seen, subject):
    assert subject_of(seen) == subject


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (steps(1, 400), "healthy"),
        (FAILURE, "failed"),
        ("the kettle boils\n" * 500, "not_understood"),
    ],
)
def test_commands_and_agents_share_the_words_for_a_result(text, status, tmp_path, capsys):
    log = tmp_path / "job.log"
    log.write_text(text)
    words = set()
    for command in ("diagnose", "triage"):
        main([command, str(log), "--format", "json"])
        read = json.loads(capsys.readouterr().out)
        words.add(read["status"])
        assert tool_answers.job(read).status == read["status"]
    assert words <= set(get_args(Status))
    assert status in words


def test_the_result_of_what_is_no_log_is_one_of_the_same_words():
    read = {"answer": None, "claims": []}
    for verdict, word in (("not_understood", "not_understood"), ("dead", "failed"), ("none", "no_failure")):
        assert tool_answers.failure({**read, "verdict": {"kind": verdict}}).status == word


REPORT = "[2026-03-01 {}:59,000] [ERROR] [launch.py:325:sigkill_handler] ['train.py'] exits with return code = 1\n"


def run_of(hour, failure=FAILURE):
    return "reading the corpus\n" + steps(4, 20).replace(" 10:", f" {hour}:") + failure + REPORT.format(f"{hour}:58")


@pytest.mark.parametrize("given", ["file", "-"])
def test_the_last_of_several_runs_is_answered_for(given, tmp_path, capsys, monkeypatch):
    """The failure of an earlier run in the same file is told apart, and explains nothing of the last one."""
    log = tmp_path / "train.log"
    log.write_text(run_of(10) + run_of(12, FAILURE.replace("rank2", "rank1").replace("'labels'", "'mask'")))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(log.read_bytes())))
    assert main([str(log) if given == "file" else "-"]) == FOUND
    printed = capsys.readouterr()
    assert "Rank 1 raised KeyError: 'mask'" in printed.out
    assert "labels'" not in printed.out
    assert "lines 1-86 are an earlier run, which ended by KeyError: 'labels'" in printed.err


def test_runs_that_fail_alike_are_counted(tmp_path, capsys):
    """A note says in how many of the runs in a file the failure came."""
    log = tmp_path / "train.log"
    log.write_text(run_of(10) + run_of(12) + run_of(14))
    assert main([str(log)]) == FOUND
    assert "The same in 3 of 3 runs" in capsys.readouterr().out
