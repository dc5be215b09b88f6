"""No file that lies among the dumps holds up their analysis, brings it down, or costs more than itself."""

from __future__ import annotations

import errno
import json
import os
import pickle
import random
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import flight_data as fr
import flight_jobs as jobs
import psutil
import pytest

from dtdebug.recorded.flight_recorder import Analysis, FlightError, analyse, load_dump, sandbox

PATIENCE = 90.0
PRIME = 2**61 - 1
"""Integers that differ by a multiple of it have one hash."""


def key(text: str) -> bytes:
    return b"X" + struct.pack("<I", len(text)) + text.encode()


def number(value: int) -> bytes:
    return pickle.dumps(value, 2)[2:-1]


DOUBLED = b"K\x01" + b"2\x86" * 60
"""A tuple of one tuple twice, and so on: to hash it takes 2**60 steps."""
ENTRY = {
    "process_group": ("0", "default_pg"), "collective_seq_id": 1, "profiling_name": "nccl:all_reduce", "pg_id": 0,
    "input_sizes": [[4]], "output_sizes": [[4]], "input_dtypes": ["Float"], "output_dtypes": ["Float"],
    "state": "scheduled", "retired": False, "frames": [], "record_id": 0,
}  # fmt: skip


def with_field(field: str, value: bytes) -> bytes:
    """A dump of one entry in which a field has a value that is given as opcodes."""
    rest = b"".join(key(k) + pickle.dumps(v, 2)[2:-1] for k, v in ENTRY.items() if k != field)
    return b"\x80\x02}" + key("entries") + b"](}(" + rest + key(field) + value + b"ues."


BOMBS: dict[str, Callable[[], bytes]] = {
    "key of doubled tuples": lambda: b"\x80\x02}(" + DOUBLED + b"K\x01u.",
    "integers of one hash": lambda: (
        b"\x80\x02}(" + b"".join(number(i * PRIME) + b"K\x01" for i in range(60_000)) + b"u."
    ),
    "set of doubled tuples": lambda: b"\x80\x04\x8f(" + DOUBLED + b"\x90.",
    "millions of dictionaries": lambda: b"\x80\x02](" + b"}" * 30_000_000 + b"e.",
    "made and dropped": lambda: b"\x80\x02" + b"}0" * 10_000_000 + b"}.",
    "name of a group": lambda: with_field("process_group", b"(" + DOUBLED + b"K\x01t"),
    "name of a call": lambda: with_field("profiling_name", DOUBLED),
    "sizes": lambda: with_field("input_sizes", b"](" + DOUBLED + b"e"),
    "frames": lambda: with_field("frames", b"](}(" + key("line") + DOUBLED + key("filename") + DOUBLED + b"ue"),
    "many calls of one hash": lambda: pickle.dumps(
        {"entries": [{**ENTRY, "input_sizes": [[i * PRIME]], "record_id": i} for i in range(1, 20_000)]}, 2
    ),
    "wide groups": lambda: pickle.dumps(
        {"pg_config": {str(i): {"desc": str(i), "ranks": "[0, 1]"} for i in range(50_000)}, "entries": []}, 2
    ),
    "deep": lambda: b"\x80\x02" + b"]" * 2_000_000 + b"a" * 1_999_999 + b".",
    "memory": lambda: b"\x80\x02]r\xff\xff\xff\x7f.",
}


def job(folder: Path) -> Path:
    """Dumps of eight ranks, of which rank 5 skips a call."""
    return fr.write(folder, fr.make(jobs.one_group(), fr.Fault("skipped", (5,)))[0])


def found_in(analysis: Analysis) -> tuple[str, tuple[int, ...]]:
    return analysis.verdict.kind, analysis.verdict.culprits


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_hostile_dump_costs_no_more_than_itself(tmp_path: Path, bomb: str) -> None:
    (job(tmp_path) / "rank_3").write_bytes(BOMBS[bomb]())
    command = [sys.executable, "-m", "dtdebug", "flight", str(tmp_path), "--format", "json"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    said = json.loads(run.stdout)
    assert (1, [5]) == (run.returncode, said["verdict"]["culprits"])
    assert "Traceback" not in run.stderr
    if bomb not in ("wide groups", "many calls of one hash"):
        assert any("rank_3" in line for line in said["coverage"]["unread"])


def test_a_program_with_threads_is_held_up_as_little(tmp_path: Path) -> None:
    """There the child is a program of its own, for a kernel can't be forked."""
    import threading

    (job(tmp_path) / "rank_3").write_bytes(BOMBS["key of doubled tuples"]())
    there: list[Analysis] = []
    thread = threading.Thread(target=lambda: there.append(analyse(tmp_path)), daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert ("skipped", (5,)) == found_in(there[0])
    assert (3,) == there[0].missing_dumps


def test_nothing_is_left_of_the_children(tmp_path: Path) -> None:
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    (job(tmp_path) / "rank_3").write_bytes(BOMBS["key of doubled tuples"]())
    analyse(tmp_path)
    assert {child.pid for child in psutil.Process().children(recursive=True)} <= before


def test_ctrl_c_ends_it(tmp_path: Path) -> None:
    for rank in range(8):
        (tmp_path / f"rank_{rank}").write_bytes(BOMBS["key of doubled tuples"]())
    run = subprocess.Popen(
        [sys.executable, "-m", "dtdebug", "flight", str(tmp_path)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        until = time.monotonic() + PATIENCE
        while not psutil.Process(run.pid).children() and time.monotonic() < until:
            time.sleep(0.02)
        children = psutil.Process(run.pid).children()
        run.send_signal(signal.SIGINT)
        assert run.wait(PATIENCE) in (130, -signal.SIGINT)
        assert children
        assert [] == psutil.wait_procs(children, PATIENCE)[1]
    finally:
        run.kill()
        run.wait()


@pytest.mark.parametrize("number", [errno.EIO, errno.ESTALE, errno.EACCES, errno.ENXIO])
@pytest.mark.parametrize("at", ["open", "fstat"])
def test_an_error_of_the_file_system_costs_that_dump_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, at: str
) -> None:
    job(tmp_path)
    inner = getattr(os, at)

    def fail(what: Any, *more: Any) -> Any:
        name = str(what) if at == "open" else str(Path(f"/proc/self/fd/{what}").readlink())
        if name.endswith("rank_3"):
            raise OSError(number, os.strerror(number))
        return inner(what, *more)

    monkeypatch.setattr(load_dump.os, at, fail)
    made = [sandbox.one(found) for found in load_dump.find_dumps(tmp_path)[0]]
    assert [3] == [rank for rank, one in enumerate(made) if isinstance(one, str)]
    assert os.strerror(number) in str(made[3])


@pytest.mark.parametrize(
    "target", ["/proc/kmsg", "/proc/self/mem", "/proc/self/environ", "/sys/kernel/notes", "/dev/zero"]
)
def test_a_link_out_of_the_folder_is_no_dump(tmp_path: Path, target: str) -> None:
    (job(tmp_path) / "rank_3").unlink()
    (tmp_path / "rank_3").symlink_to(target)
    analysis = analyse(tmp_path)
    assert ("skipped", (5,)) == found_in(analysis)
    assert (3,) == analysis.missing_dumps


@pytest.mark.parametrize("entries", [[{}], [{"a": 1}] * 5, [1, None, "text"], [[]]])
def test_dumps_whose_entries_are_all_refused_are_nothing_usable(tmp_path: Path, entries: list[Any]) -> None:
    for rank in range(4):
        (tmp_path / f"rank_{rank}").write_bytes(pickle.dumps({"version": "2.10", "entries": entries}, 2))
    with pytest.raises(FlightError, match="makes sense"):
        analyse(tmp_path)
    run = subprocess.run(
        [sys.executable, "-m", "dtdebug", "flight", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (2, "", 1) == (run.returncode, run.stdout, len(run.stderr.strip().splitlines()))


def test_coverage_says_what_was_not_read(tmp_path: Path) -> None:
    (job(tmp_path) / "rank_3").write_bytes(b"\x80\x02cos\nsystem\n.")
    (tmp_path / "rank_6").unlink()
    coverage = analyse(tmp_path).coverage
    assert (6, 8) == (coverage.ranks, coverage.expected)
    assert any("rank_3" in line and "os.system" in line for line in coverage.unread)
    assert any("3,6" in line for line in coverage.unread)


def test_a_healthy_job_with_a_dump_missing_is_not_said_to_be_healthy(tmp_path: Path) -> None:
    fr.write(tmp_path, fr.make(jobs.one_group())[0])
    assert "none" == analyse(tmp_path).verdict.kind
    (tmp_path / "rank_2").unlink()
    found = analyse(tmp_path)
    assert ("not_understood", ()) == found_in(found)
    assert "rank 2" in found.next


def test_dumps_that_hold_nothing_say_so_and_clear_nobody(tmp_path: Path) -> None:
    for rank in range(4):
        (tmp_path / f"rank_{rank}.json").write_text('{"entries": [], "pg_config": {}, "version": "2.4"}')
    found = analyse(tmp_path)
    assert ("not_understood", "The dumps of ranks 0-3 hold no entry: nothing was recorded.") == (
        found.verdict.kind, found.verdict.summary,
    )  # fmt: skip


OPCODES = (
    *(bytes([code]) for code in b"}])(usaet\x85\x86\x87201N\x88\x8f\x90\x91b\x94Rodl"),
    b"K\x05", b"q\x01", b"h\x01", b"q\x02", b"h\x02", b"J\xff\xff\xff\x7f", b"\x8a\x08" + b"\x7f" * 8,
    b"G" + b"\x7f\xf8" + b"\0" * 6, key("entries"), key("pg_config"), key("state"), key("frames"),
)  # fmt: skip
SEEDS = int(os.environ.get("DTDEBUG_GRAMMAR", "150"))


def test_no_mixture_of_opcodes_brings_it_down(tmp_path: Path) -> None:
    """`DTDEBUG_GRAMMAR=5000` tries more of them."""
    for seed in range(SEEDS):
        draw = random.Random(seed)
        body = b"".join(draw.choices(OPCODES, k=draw.randrange(5, 400)))
        if draw.random() < 0.5:  # most mixtures end soon: these begin with what a dump has
            body = b"}(" + key("entries") + b"](}(" + body + b"ueu"
        (tmp_path / f"rank_{seed}").write_bytes(b"\x80\x02" + body + b".")
    made = sandbox.every(load_dump.find_dumps(tmp_path)[0])
    assert SEEDS == len(made)
    assert all(isinstance(one, str) or one.rank < SEEDS for one in made)


def test_lists_of_ranks_are_parsed_and_stored_once_however_many_dumps_and_groups_tell_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranks, groups = 40, 30
    config = {str(g): {"name": str(g), "desc": "x", "ranks": str([*range(ranks)])} for g in range(groups)}
    for rank in range(ranks):
        entries = [
            {**ENTRY, "process_group": (str(g), "x"), "pg_id": g, "record_id": g} for g in range(rank % 7, groups, 7)
        ]
        (tmp_path / f"rank_{rank}").write_bytes(
            pickle.dumps({"version": "2.9", "pg_config": config, "entries": entries})
        )
    found, _ = load_dump.find_dumps(tmp_path)
    programs = [made for made in sandbox.every(found) if not isinstance(made, str)]
    lists = {id(group.ranks) for program in programs for group in program.groups.values()}

    assert len(programs) == ranks
    assert all(len(program.groups) == groups for program in programs)
    assert len(lists) == 1
    assert analyse(tmp_path).verdict.kind
