"""The loader of flight-recorder dumps meets files that no rank has written, or not to the end."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import pickle
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import flight_data as fr
import flight_jobs as jobs
import pytest

from dtdebug.recorded.flight_recorder import Analysis, FlightError, analyse, load_dump, sandbox
from dtdebug.recorded.flight_recorder.group_status import reduced_program

PATIENCE = 60.0
T = TypeVar("T")


def within(seconds: float, action: Callable[[], T]) -> T:
    """The result of an action that must not hang."""
    found: list[Any] = []
    failed: list[BaseException] = []

    def act() -> None:
        try:
            found.append(action())
        except BaseException as error:  # raised again below
            failed.append(error)

    thread = threading.Thread(target=act, daemon=True)
    thread.start()
    thread.join(seconds)
    assert found or failed, f"still busy after {seconds} s"
    if failed:
        raise failed[0]
    return found[0]


def refusal(path: Path) -> str:
    """Why a file is refused."""
    with pytest.raises(load_dump.DumpError) as raised:
        within(PATIENCE, lambda: load_dump.read_dump(path))
    return str(raised.value)


@pytest.fixture
def dump() -> dict[str, Any]:
    """What one healthy rank leaves."""
    return fr.make(jobs.one_group(4, 2))[0][0]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "nccl_trace_rank_3"


def reduced(function: Any, *arguments: Any) -> bytes:
    """A pickle that calls a function when it is loaded by `pickle`."""

    class Call:
        def __reduce__(self) -> tuple[Any, ...]:
            return function, arguments

    return pickle.dumps({"entries": [Call()], "version": "2.10"}, 2)


class TestForms:
    @pytest.mark.parametrize("form", fr.FORMATS)
    def test_every_form_that_torch_has_written_is_read(self, form: str, tmp_path: Path) -> None:
        dumps, _ = fr.make(jobs.one_group(4, 2), form=form)
        fr.write(tmp_path, dumps, form)
        read = load_dump.read_dump(tmp_path / "rank_2")
        assert len(fr.records_of(dumps[2])) == len(read.get("entries", []))

    @pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
    def test_every_pickle_protocol_is_read(self, protocol: int, path: Path, dump: dict[str, Any]) -> None:
        path.write_bytes(pickle.dumps(dump, protocol))
        assert dump == load_dump.read_dump(path)

    def test_indented_json_is_read(self, path: Path) -> None:
        dumps, _ = fr.make(jobs.one_group(4, 2), form="json")
        path.write_text("\n  " + json.dumps(dumps[1], indent=2))
        assert dumps[1]["entries"] == [
            {**entry, "process_group": tuple(entry["process_group"])} for entry in load_dump.read_dump(path)["entries"]
        ]


class TestHostilePickles:
    @pytest.mark.parametrize(
        ("function", "arguments", "name"),
        [(os.system, ("touch {mark}",), "system"), (open, ("{mark}", "w"), "open"), (eval, ("1",), "eval")],
    )
    def test_a_pickle_that_would_call_something_is_refused_by_name(
        self, path: Path, tmp_path: Path, function: Any, arguments: tuple[str, ...], name: str
    ) -> None:
        mark = tmp_path / "mark"
        path.write_bytes(reduced(function, *(argument.format(mark=mark) for argument in arguments)))
        assert name in refusal(path)
        assert not mark.exists()

    @pytest.mark.parametrize(
        "opcodes",
        [
            b"cos\nsystem\n(S'true'\ntR.",
            b"\x80\x02cbuiltins\nexec\nX\x04\x00\x00\x00passq\x00\x85R.",
            b"(S'true'\nios\nsystem\n.",
            b"\x80\x04\x8c\x02os\x8c\x06system\x93.",
            b"\x80\x02\x82\x01.",
            b"\x80\x02Pid\n.",
            b"\x80\x02U\x02idQ.",
        ],
        ids=["GLOBAL", "GLOBAL with protocol", "INST", "STACK_GLOBAL", "EXT1", "PERSID", "BINPERSID"],
    )
    def test_every_opcode_that_reaches_out_is_refused(self, path: Path, opcodes: bytes) -> None:
        path.write_bytes(opcodes)
        assert path.name in refusal(path)

    def test_the_name_of_what_is_refused_is_cleaned(self, path: Path) -> None:
        path.write_bytes(b"\x80\x02c\x1b[2Jos\n\x1b]0;x\x07system\n.")
        assert "\x1b" not in refusal(path)

    @pytest.mark.parametrize(
        "opcodes",
        [
            b"\x80\x02]r\xff\xff\xff\xff.",
            b"\x80\x02]r\xff\xff\xff\x7f.",
            b"\x80\x05\x96" + struct.pack("<Q", 1 << 40) + b"x.",
            b"\x80\x05\x96" + struct.pack("<Q", 1 << 33) + b"x.",
            b"\x80\x04\x8d" + struct.pack("<Q", 1 << 62) + b"x.",
            b"\x80\x04\x95" + struct.pack("<Q", 1 << 62) + b"].",
            b"\x80\x02\x8b" + struct.pack("<i", (1 << 31) - 1) + b"x.",
        ],
        ids=["memo of 64 GiB", "memo of 32 GiB", "bytes of 1 TiB", "bytes of 8 GiB", "text", "frame", "integer"],
    )
    def test_a_few_bytes_that_ask_for_much_memory_are_refused(self, path: Path, opcodes: bytes) -> None:
        path.write_bytes(opcodes)
        assert path.name in refusal(path)

    def test_lists_a_million_deep_end_in_a_dump_or_a_refusal(self, path: Path) -> None:
        path.write_bytes(b"\x80\x02" + b"]" * 10**6 + b"a" * (10**6 - 1) + b".")
        with contextlib.suppress(load_dump.DumpError):
            within(PATIENCE, lambda: load_dump.read_dump(path))

    @pytest.mark.parametrize("content", [1, "text", None, {}, {"a": 1}, {1: 2}, (), b"bytes", {"entries"}])
    def test_a_pickle_of_something_else_is_no_dump(self, path: Path, content: Any) -> None:
        path.write_bytes(pickle.dumps(content, 4))
        assert path.name in refusal(path)


class TestBrokenFiles:
    def test_an_empty_file_is_said_to_be_empty(self, path: Path) -> None:
        path.touch()
        assert "empty" in refusal(path)

    @pytest.mark.parametrize("form", ["2.10", "json"])
    def test_a_dump_cut_anywhere_is_refused(self, path: Path, form: str) -> None:
        dumps, _ = fr.make(jobs.one_group(4, 1), form=form)
        whole = fr.encode(dumps[0], form)
        for size in {1, 2, 3, 87, len(whole) // 2, len(whole) - 1}:
            path.write_bytes(whole[:size])
            assert path.name in refusal(path)

    def test_87_bytes_without_entries_are_read_as_a_rank_that_called_nothing(self, path: Path) -> None:
        """Such files are left by ranks whose recorder was empty when they ended."""
        path.write_bytes(pickle.dumps({"version": "2.10", "pg_config": {}, "entries": []}, 2))
        assert [] == load_dump.read_dump(path)["entries"]

    def test_a_compressed_dump_is_named_as_such(self, path: Path, dump: dict[str, Any]) -> None:
        path.write_bytes(gzip.compress(pickle.dumps(dump, 2)))
        assert "compress" in refusal(path)

    @pytest.mark.parametrize(
        "content", [b"{", b"[", b"{]", b'{"entries": [}', b"[[[", b"\x00" * 100, b"\xff\xfe{}", b"log"]
    )
    def test_garbage_is_refused(self, path: Path, content: bytes) -> None:
        path.write_bytes(content)
        assert path.name in refusal(path)

    @pytest.mark.parametrize("text", ["[" * 10**6, '{"entries":' * 10**5])
    def test_deeply_nested_json_is_refused(self, path: Path, text: str) -> None:
        path.write_text(text)
        assert path.name in refusal(path)

    @pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400", "-1e400", "9" * 5000])
    def test_numbers_that_are_none_end_in_a_dump_or_a_refusal(self, path: Path, number: str) -> None:
        path.write_text(f'{{"version": "2.10", "entries": [{{"record_id": {number}, "duration_ms": {number}}}]}}')
        with contextlib.suppress(load_dump.DumpError):
            assert 1 == len(load_dump.read_dump(path)["entries"])


class TestNotFiles:
    def test_a_directory_named_like_a_dump_is_refused(self, path: Path) -> None:
        path.mkdir()
        assert path.name in refusal(path)

    def test_a_fifo_is_not_waited_for(self, path: Path) -> None:
        os.mkfifo(path)
        assert path.name in refusal(path)

    @pytest.mark.parametrize("device", ["/dev/zero", "/dev/full", "/dev/stdin", "/dev/tty"])
    def test_a_link_to_a_device_is_refused(self, path: Path, device: str) -> None:
        path.symlink_to(device)
        assert path.name in refusal(path)

    def test_a_link_that_leads_nowhere_or_to_itself_is_refused(self, path: Path) -> None:
        path.symlink_to("nowhere")
        assert path.name in refusal(path)
        path.unlink()
        path.symlink_to(path.name)
        assert path.name in refusal(path)

    @pytest.mark.parametrize("begin", [b"", b"\x80\x02", b"{"])
    def test_a_sparse_gibibyte_is_refused_without_being_read(self, path: Path, begin: bytes) -> None:
        with path.open("wb") as file:
            file.write(begin)
            file.truncate((1 << 30) + 1)
        assert path.name in refusal(path)

    @pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
    def test_a_file_without_permission_is_refused_with_the_reason(self, path: Path) -> None:
        path.touch(mode=0)
        assert "ermission" in refusal(path)


class TestNames:
    def found(self, folder: Path, prefix: str | None = None) -> tuple[dict[int, str], list[str]]:
        """The dumps that are taken, by rank, and the notes."""
        found, notes = load_dump.find_dumps(folder, prefix)
        return {one.rank: one.path.name for one in found}, notes

    @pytest.mark.parametrize(
        "prefix", ["nccl_trace_rank_", "comm_lib_trace_rank_", "dump", "", "my-job.rank=", "a_1_rank_", "räng_"]
    )
    def test_any_prefix_is_understood(self, tmp_path: Path, prefix: str) -> None:
        for rank in range(12):
            (tmp_path / f"{prefix}{rank}").touch()
        assert ({rank: f"{prefix}{rank}" for rank in range(12)}, []) == self.found(tmp_path)

    def test_names_with_the_host_are_one_run(self, tmp_path: Path) -> None:
        names = {rank: f"nccl_trace_rank_host{'AB'[rank // 4]}_{rank}" for rank in range(8)}
        for name in names.values():
            (tmp_path / name).touch()
        assert (names, []) == self.found(tmp_path)

    def test_ranks_with_leading_zeros_are_understood(self, tmp_path: Path) -> None:
        for rank in range(3):
            (tmp_path / f"rank_{rank:05}").touch()
        assert [0, 1, 2] == sorted(self.found(tmp_path)[0])

    def test_the_pickle_is_preferred_to_the_json_of_the_same_rank(self, tmp_path: Path) -> None:
        for name in ("rank_0", "rank_0.json", "rank_1.json"):
            (tmp_path / name).touch()
        assert ({0: "rank_0", 1: "rank_1.json"}, []) == self.found(tmp_path)

    def test_of_two_runs_one_is_taken_and_the_other_named(self, tmp_path: Path) -> None:
        for rank in range(8):
            (tmp_path / f"run-b_rank_{rank}").touch()
        for rank in range(4):
            (tmp_path / f"run-a_rank_{rank}").touch()
        found, notes = self.found(tmp_path)
        assert {f"run-b_rank_{rank}" for rank in range(8)} == set(found.values())
        assert any("run-a_rank_" in note for note in notes)

    def test_a_prefix_chooses_the_run(self, tmp_path: Path) -> None:
        for rank in range(8):
            (tmp_path / f"run-b_rank_{rank}").touch()
            (tmp_path / f"run-a_rank_{rank}").touch()
        assert {f"run-a_rank_{rank}" for rank in range(8)} == set(self.found(tmp_path, "run-a")[0].values())

    def test_hidden_files_and_files_without_a_number_are_no_dumps(self, tmp_path: Path) -> None:
        for name in ("rank_0", ".rank_1", "truth.json", "README", "rank_2.swp"):
            (tmp_path / name).touch()
        assert ({0: "rank_0"}, []) == self.found(tmp_path)

    def test_a_rank_beyond_all_bounds_is_no_rank(self, tmp_path: Path) -> None:
        (tmp_path / ("rank_" + "9" * 200)).touch()
        assert all(rank < 10**8 for rank in self.found(tmp_path)[0])

    def test_a_hostile_prefix_is_cleaned_in_the_notes(self, tmp_path: Path) -> None:
        for prefix in ("rank_", "\x1b[2Jrank_"):
            (tmp_path / f"{prefix}0").touch()
        assert not any("\x1b" in note for note in self.found(tmp_path)[1])

    @pytest.mark.parametrize("name", ["absent", "file"])
    def test_a_folder_that_is_none_is_refused_with_its_name(self, tmp_path: Path, name: str) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(load_dump.FlightError, match=name):
            load_dump.find_dumps(tmp_path / name)


def job(folder: Path, kind: str = "skipped", form: str = "2.10", prefix: str = "rank_", **more: Any) -> Path:
    """Dumps of eight ranks, of which rank 5 is the culprit."""
    dumps, _ = fr.make(jobs.one_group(), fr.Fault(kind, (5,)), form, **more)
    return fr.write(folder, dumps, form, prefix)


def answered(folder: Path, prefix: str | None = None) -> Analysis:
    """The analysis, whose time is bounded by itself."""
    return analyse(folder, prefix)


def fifo(path: Path) -> None:
    os.mkfifo(path)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "code": lambda path: path.write_bytes(reduced(os.system, "true")),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-50]),
    "empty": lambda path: path.write_bytes(b""),
    "87 bytes": lambda path: path.write_bytes(path.read_bytes()[:87]),
    "garbage": lambda path: path.write_bytes(os.urandom(5000)),
    "JSON garbage": lambda path: path.write_bytes(b'{"entries": [{"a": NaN'),
    "text": lambda path: path.write_text("Traceback (most recent call last)\n"),
    "deep": lambda path: path.write_bytes(b"\x80\x02" + b"]" * 10**5 + b"a" * (10**5 - 1) + b"."),
    "memo": lambda path: path.write_bytes(b"\x80\x02]r\xff\xff\xff\xff."),
    "directory": lambda path: (path.unlink(), path.mkdir()),
    "FIFO": lambda path: (path.unlink(), fifo(path)),
    "endless": lambda path: (path.unlink(), path.symlink_to("/dev/zero")),
    "sparse": lambda path: os.truncate(path, (1 << 30) + 1),
    "compressed": lambda path: path.write_bytes(gzip.compress(path.read_bytes())),
    "absent": lambda path: path.unlink(),
}


class TestTheOthers:
    """Damage to one dump leaves the others to be analysed."""

    @pytest.mark.parametrize("damage", DAMAGE)
    def test_a_damaged_dump_of_a_rank_that_waits_changes_no_verdict(self, tmp_path: Path, damage: str) -> None:
        DAMAGE[damage](job(tmp_path) / "rank_0")
        analysis = answered(tmp_path)
        assert ("skipped", (5,)) == (analysis.verdict.kind, analysis.verdict.culprits)
        if damage != "deep":
            assert (0,) == analysis.missing_dumps

    @pytest.mark.parametrize("damage", DAMAGE)
    def test_every_damage_is_told_of(self, tmp_path: Path, damage: str) -> None:
        DAMAGE[damage](job(tmp_path) / "rank_3")
        analysis = answered(tmp_path)
        assert 3 in analysis.missing_dumps or any("rank_3" in note for note in analysis.notes)

    @pytest.mark.parametrize("damage", DAMAGE)
    def test_nothing_but_damage_is_one_clear_error_or_no_culprit(self, tmp_path: Path, damage: str) -> None:
        job(tmp_path)
        for rank in range(8):
            DAMAGE[damage](tmp_path / f"rank_{rank}")
        with contextlib.suppress(FlightError):
            assert () == answered(tmp_path).verdict.culprits

    def test_the_culprits_own_dump_may_be_the_damaged_one(self, tmp_path: Path) -> None:
        (job(tmp_path, "not_arrived") / "rank_5").write_bytes(b"")
        analysis = answered(tmp_path)
        assert (5,) == analysis.missing_dumps
        assert (5,) == analysis.verdict.culprits


class TestSeveralRuns:
    def test_the_larger_of_two_worlds_is_analysed(self, tmp_path: Path) -> None:
        job(tmp_path, prefix="new_rank_")
        fr.write(tmp_path, fr.make(jobs.one_group(4))[0], prefix="old_rank_")
        analysis = answered(tmp_path)
        assert (5,) == analysis.verdict.culprits
        assert any("old_rank_" in note for note in analysis.notes)

    def test_a_prefix_chooses_the_run(self, tmp_path: Path) -> None:
        job(tmp_path, prefix="a_rank_")
        fr.write(tmp_path, fr.make(jobs.one_group(), fr.Fault("skipped", (2,)))[0], prefix="b_rank_")
        assert ((5,), (2,)) == tuple(answered(tmp_path, f"{run}_rank_").verdict.culprits for run in "ab")

    def test_dumps_of_ranks_beyond_the_world_are_left_over_from_a_larger_run(self, tmp_path: Path) -> None:
        """The recorder overwrites the files of the ranks that there still are."""
        larger, _ = fr.make(jobs.one_group(16, 3))
        fr.write(tmp_path, {rank: larger[rank] for rank in range(8, 16)}, age=-86400)
        job(tmp_path)
        analysis = answered(tmp_path)
        assert ("skipped", (5,)) == (analysis.verdict.kind, analysis.verdict.culprits)

    def test_a_job_with_a_host_in_each_name_is_one_run(self, tmp_path: Path) -> None:
        dumps, _ = fr.make(jobs.one_group(), fr.Fault("skipped", (5,)))
        for rank, content in dumps.items():
            fr.write(tmp_path, {rank: content}, prefix=f"nccl_trace_rank_host{rank // 4}_")
        assert ("skipped", (5,)) == (answered(tmp_path).verdict.kind, answered(tmp_path).verdict.culprits)

    def test_clocks_that_differ_by_a_day_change_nothing(self, tmp_path: Path) -> None:
        job(tmp_path, skew=86_400 * 10**9)
        assert ("skipped", (5,)) == (answered(tmp_path).verdict.kind, answered(tmp_path).verdict.culprits)

    def test_other_files_beside_the_dumps_are_not_ranks(self, tmp_path: Path) -> None:
        job(tmp_path)
        for name in ("train.log.2026", "stderr_7", "notes", "core.12345"):
            (tmp_path / name).write_text("no dump\n")
        analysis = answered(tmp_path)
        assert ("skipped", (5,)) == (analysis.verdict.kind, analysis.verdict.culprits)
        assert () == analysis.missing_dumps


def shared(depth: int) -> list[Any]:
    """A list that is small in memory and endless when it is walked."""
    found: list[Any] = []
    for _ in range(depth):
        found = [found] * 10
    return found


def cyclic() -> list[Any]:
    """A list that holds itself."""
    found: list[Any] = []
    found.append(found)
    return found


ODD: dict[str, Any] = {
    "shared": shared(40),
    "cyclic": cyclic(),
    "huge integer": 10**10_000,
    "negative": -1,
    "not a number": float("nan"),
    "infinite": float("inf"),
    "text": "\x1b[2J<script>",
    "long text": "x" * 10**6,
    "bytes": b"\x00",
    "nothing": None,
    "dictionary": {},
    "true": True,
    "surrogate": "\ud800",
    "list": [],
    "numbers": [1, 2, 3],
}
KEYS = (
    "record_id pg_id process_group collective_seq_id p2p_seq_id op_id profiling_name time_created_ns input_sizes "
    "output_sizes input_dtypes output_dtypes state retired is_p2p frames timeout_ms time_discovered_completed_ns"
)


class TestOddContent:
    """Whatever stands in the dumps of one rank, there is an answer about the others."""

    @pytest.fixture(autouse=True)
    def here(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """None of this takes long to read: no child is needed for each."""
        monkeypatch.setattr(sandbox, "every", lambda found: [sandbox.one(f) for f in found])

    @pytest.mark.parametrize("value", ODD)
    @pytest.mark.parametrize("key", KEYS.split())
    def test_any_value_in_any_field_of_an_entry(self, tmp_path: Path, key: str, value: str) -> None:
        dumps, _ = fr.make(jobs.one_group(), fr.Fault("skipped", (5,)))
        for entry in dumps[2]["entries"]:
            entry[key] = ODD[value]
        answered(fr.write(tmp_path, dumps))

    @pytest.mark.parametrize("value", ODD)
    @pytest.mark.parametrize("key", ["version", "pg_config", "pg_status", "entries", "nccl_comm_state"])
    def test_any_value_in_any_field_of_a_dump(self, tmp_path: Path, key: str, value: str) -> None:
        dumps, _ = fr.make(jobs.one_group(), fr.Fault("skipped", (5,)))
        dumps[2][key] = ODD[value]
        verdict = answered(fr.write(tmp_path, dumps)).verdict
        if key in ("version", "pg_status", "nccl_comm_state"):
            assert (5,) == verdict.culprits

    @pytest.mark.parametrize("value", ODD)
    @pytest.mark.parametrize("key", ["name", "desc", "ranks"])
    def test_any_value_in_the_description_of_a_group(self, tmp_path: Path, key: str, value: str) -> None:
        dumps, _ = fr.make(jobs.one_group(), fr.Fault("skipped", (5,)))
        dumps[2]["pg_config"]["0"][key] = ODD[value]
        answered(fr.write(tmp_path, dumps))

    @pytest.mark.parametrize("value", ODD)
    @pytest.mark.parametrize("key", ["name", "filename", "line"])
    def test_any_value_in_a_frame(self, tmp_path: Path, key: str, value: str) -> None:
        dumps, _ = fr.make(jobs.one_group(), fr.Fault("skipped", (5,)))
        for entry in dumps[5]["entries"]:
            entry["frames"] = [{**frame, key: ODD[value]} for frame in entry["frames"]]
        verdict = answered(fr.write(tmp_path, dumps)).verdict
        assert (5,) == verdict.culprits
        assert "\x1b" not in repr(verdict)

    @pytest.mark.parametrize(
        "ranks",
        [
            "[0, 1",
            "range(10**9)",
            "[" * 10**5,
            "[10000000000]",
            "[-1]",
            "[0, 0, 0]",
            "",
            "9" * 10**5,
            "__import__('os')",
        ],
    )
    def test_any_text_as_the_ranks_of_a_group(self, tmp_path: Path, ranks: str) -> None:
        dumps, _ = fr.make(jobs.one_group(), fr.Fault("skipped", (5,)))
        dumps[2]["pg_config"]["0"]["ranks"] = ranks
        answered(fr.write(tmp_path, dumps))

    def test_ranks_of_a_world_of_a_billion_are_not_counted_out(self, tmp_path: Path) -> None:
        dumps, _ = fr.make(jobs.one_group(4, 3))
        for content in dumps.values():
            content["pg_config"]["0"]["ranks"] = "[0, 999999999]"
        assert 100_000 > len(answered(fr.write(tmp_path, dumps)).missing_dumps)

    def test_a_million_empty_entries_are_no_entries(self, tmp_path: Path) -> None:
        folder = job(tmp_path)
        (folder / "rank_2").write_bytes(b"\x80\x02}X\x07\x00\x00\x00entries](" + b"}" * 10**6 + b"es.")
        assert (5,) == answered(folder).verdict.culprits


class TestCommandLine:
    """The whole program ends in time, in bounded memory, with a status that says what it found."""

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """`dtdebug flight`, in bounded time."""
        command = [sys.executable, "-m", "dtdebug", "flight", *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)

    @pytest.mark.parametrize("damage", DAMAGE)
    def test_damage_to_one_dump_is_told_in_a_line(self, tmp_path: Path, damage: str) -> None:
        DAMAGE[damage](job(tmp_path) / "rank_3")
        run = self.run(str(tmp_path), "--format", "json")
        assert 1 == run.returncode
        assert [5] == json.loads(run.stdout)["verdict"]["culprits"]
        assert "Traceback" not in run.stderr

    def test_a_healthy_job_is_status_0(self, tmp_path: Path) -> None:
        fr.write(tmp_path, fr.make(jobs.one_group())[0])
        assert 0 == self.run(str(tmp_path)).returncode

    @pytest.mark.parametrize("name", ["absent", "empty"])
    def test_a_folder_without_dumps_is_status_2_and_one_line(self, tmp_path: Path, name: str) -> None:
        (tmp_path / "empty").mkdir()
        run = self.run(str(tmp_path / name))
        assert 2 == run.returncode
        assert 1 == len(run.stderr.strip().splitlines())
        assert name in run.stderr


def entry(**more: Any) -> dict[str, Any]:
    """An unfinished call, as a dump has it."""
    return {
        "frames": [{"name": "f", "filename": "train.py", "line": 7}], "record_id": 0, "pg_id": 0,
        "process_group": ("0", "default_pg"), "collective_seq_id": 1, "p2p_seq_id": 0,
        "profiling_name": "nccl:all_reduce", "time_created_ns": 1,
        "input_sizes": [[4]], "input_dtypes": ["Float"], "output_sizes": [[4]],
        "output_dtypes": ["Float"], "state": "scheduled", "retired": False, **more,
    }  # fmt: skip


@pytest.mark.parametrize(("ranks", "members"), [("[0, 1]", (0, 1)), ("[0, 99999999999]", ()), ("[0-99999999999]", ())])
def test_a_number_that_no_rank_has_makes_no_members_of_its_parts(ranks: str, members: tuple[int, ...]) -> None:
    raw = {"entries": [entry()], "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": ranks}}}

    assert [group.ranks for group in reduced_program(raw, 0).groups.values()] == [members]


@pytest.mark.parametrize("line", [-1, -(10**20), 1 << 24, 10**30])
def test_a_line_that_no_file_has_is_no_place(line: int) -> None:
    made = reduced_program({"entries": [entry(frames=[{"name": "f", "filename": "train.py", "line": line}])]}, 0)

    assert made.bad == 0
    assert [len(site) for site in made.site_table] == [0]


@pytest.mark.parametrize("types", [[float("nan")], (), {"a": 1}, [None], 7])
def test_types_that_are_no_text_make_no_call_that_differs(types: Any) -> None:
    made = reduced_program({"entries": [entry(), entry(collective_seq_id=2, input_dtypes=types)]}, 0)

    assert (made.bad, len(made.seqs)) == (int(bool(types)), 2 - bool(types))
