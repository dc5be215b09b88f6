"""Hostile input by kind: each maker writes files into a folder, from a seed and a size, and returns the command.

`benchmarks/held.py` prints what they cost as they grow; the tests hold them to bounds.
"""

from __future__ import annotations

import gzip
import json
import os
import pickle
import random
import struct
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import flight_data as fr
import flight_jobs as jobs

PRIME = 2**61 - 1
"""Integers that differ by a multiple of it have one hash."""
SECRET = "line-of-a-file-that-is-nobodys-business"
Maker = Callable[[random.Random, Path, int], list[str]]


def text(value: str) -> bytes:
    """Opcode that pushes text."""
    data = value.encode()
    return b"X" + struct.pack("<I", len(data)) + data


def job(folder: Path) -> dict[int, Any]:
    """Dumps of eight ranks, of which rank 5 skips a call."""
    return fr.make(jobs.one_group(), fr.Fault("skipped", (5,)))[0]


# Files that a text names.


def _made(path: Path, make: Callable[[Path], object]) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    make(path)
    return str(path)


def _linked_key(folder: Path) -> str:
    elsewhere = folder.parent / "elsewhere"
    _made(elsewhere / "key.pem", lambda p: p.write_text(f"{SECRET}\n" * 400))
    return _made(folder / "innocent.py", lambda p: p.symlink_to(elsewhere / "key.pem"))


def _sparse(path: Path, size: int, head: bytes = b"") -> None:
    with path.open("wb") as file:
        file.write(head)
        file.truncate(size)


SPECIAL: dict[str, Callable[[Path], str]] = {
    "page map": lambda _: "/proc/self/pagemap",
    "kernel log": lambda _: "/proc/kmsg",
    "endless device": lambda _: "/dev/zero",
    "terminal": lambda _: "/dev/tty",
    "pipe": lambda folder: _made(folder / "pipe.py", os.mkfifo),
    "link to page map": lambda folder: _made(folder / "map.py", lambda p: p.symlink_to("/proc/self/pagemap")),
    "link to device": lambda folder: _made(folder / "zero.py", lambda p: p.symlink_to("/dev/zero")),
    "link in a circle": lambda folder: _made(folder / "circle.py", lambda p: p.symlink_to(p)),
    "sparse": lambda folder: _made(folder / "sparse.py", lambda p: _sparse(p, 3 << 30)),
    "no source": lambda folder: _made(folder / "key.pem", lambda p: p.write_text(f"{SECRET}\n" * 400)),
    "key with another name": _linked_key,
    "folder": lambda folder: _made(folder / "folder.py", Path.mkdir),
    "nul": lambda _: "/a\0b.py",
    "long": lambda _: "/" + "a" * 5_000 + ".py",
    "memory": lambda _: "/proc/self/mem",
    "environment": lambda _: "/proc/self/environ",
}
"""Name -> makes the file, and returns what a frame says."""


def special_in_dump(kind: str) -> Maker:
    """Dumps whose frames name such a file."""

    def make(rng: random.Random, folder: Path, size: int) -> list[str]:
        named = SPECIAL[kind](folder / "src")
        dumps = job(folder)
        for content in dumps.values():
            for entry in fr.records_of(content):
                for frame in entry["frames"]:
                    if frame["filename"] == fr.SCRIPT:
                        frame["filename"] = named
        return ["flight", str(fr.write(folder / "dumps", dumps))]

    return make


def special_in_log(kind: str) -> Maker:
    """A log whose tracebacks name such a file."""

    def make(rng: random.Random, folder: Path, size: int) -> list[str]:
        named = SPECIAL[kind](folder / "src")
        shown = named.replace("\0", "")
        rows = "".join(
            f'[rank{rank}]: Traceback (most recent call last):\n[rank{rank}]:   File "{shown}", line {3 + rank}, in f\n'
            f"[rank{rank}]:     loss.backward()\n[rank{rank}]: ValueError: bad {rank}\n"
            for rank in range(4)
        )
        (folder / "job.log").write_text(rows)
        return ["diagnose", str(folder / "job.log")]

    return make


def special_in_run(kind: str) -> Maker:
    """The folder of a run whose verdict and records name such a file."""

    def make(rng: random.Random, folder: Path, size: int) -> list[str]:
        named = SPECIAL[kind](folder / "src").replace("\0", "?")
        run = folder / "run"
        for part in ("ranks", "flight", "stacks", "errors", "hosts"):
            (run / part).mkdir(parents=True)
        frame = {"file": named, "line": 3, "function": "f"}
        ranks = [{"rank": r, "pid": 1000 + r, "world_size": 4, "stack": [frame], "alive": True} for r in range(4)]
        sites = [{"rank": r, **frame} for r in range(4)]
        verdict = {"kind": "not_arrived", "summary": "x", "culprits": [3], "waiting": [0, 1, 2], "sites": sites}
        (run / "verdict.json").write_text(json.dumps({"v": 1, "ranks": ranks, "verdict": verdict}))
        (run / "run.json").write_text(json.dumps({"v": 1, "command": ["python", "t.py"], "started": 1.0}))
        for row in ranks:
            (run / "ranks" / f"{row['pid']}-abc.json").write_text(json.dumps(row))
            (run / "stacks" / f"{row['pid']}-abc.txt").write_text(
                f'Thread 0x00007f (most recent call first):\n  File "{named}", line 3 in f\n'
            )
        return ["report", str(run)]

    return make


# Bombs in dumps; their sizes are bytes of one dump, or numbers of them.


def colliding(seed: int, count: int) -> bytes:
    """A dump with a table whose keys have one hash."""
    rng = random.Random(seed)
    rows = b"".join(pickle.dumps((i + rng.randrange(2)) * 2 * PRIME + 1, 2)[2:-1] + b"K\x01" for i in range(count))
    return b"\x80\x02}" + text(rng.choice(("entries", "pg_config", "pg_status"))) + b"}(" + rows + b"us."


def collisions(rng: random.Random, folder: Path, size: int) -> list[str]:
    """A folder of `size` such dumps."""
    for rank in range(size):
        (folder / f"rank_{rank}").write_bytes(colliding(rng.randrange(1 << 30), 60_000))
    return ["flight", str(folder)]


def padded_collision(rng: random.Random, folder: Path, size: int) -> list[str]:
    """One of them in a sparse file of `size` bytes."""
    _sparse(folder / "rank_0", size, colliding(rng.randrange(1 << 30), 120_000))
    return ["flight", str(folder)]


def open_groups(rng: random.Random, folder: Path, size: int) -> list[str]:
    """`size` groups, of which each rank waits in all."""
    ranks = 8
    entry = fr.records_of(job(folder)[0])[0]
    for rank in range(ranks):
        entries = [
            {
                **entry, "process_group": (str(g), f"group {g}"), "pg_id": g, "record_id": g, "state": "scheduled",
                "collective_seq_id": 1 + rng.randrange(2), "retired": False, "time_discovered_completed_ns": None,
            }
            for g in range(size)
        ]  # fmt: skip
        members = "[" + ", ".join(map(str, range(ranks))) + "]"
        config = {str(g): {"name": str(g), "desc": f"group {g}", "ranks": members} for g in range(size)}
        content = {"version": "2.10", "pg_config": config, "pg_status": {}, "entries": entries}
        (folder / f"rank_{rank}").write_bytes(pickle.dumps(content, 2))
    return ["flight", str(folder)]


PUSHES = {
    "memo puts": b"q\x00", "memo puts of 4 bytes": b"r\x00\x00\x00\x01", "memoize": b"\x94", "lists": b"]",
    "dictionaries": b"}", "sets": b"\x8f", "marks": b"(", "none": b"N", "doubled": b"2", "long": b"\x8a\x01\x7f",
    "lists and memo": b"]\x94", "float": b"G\x00\x00\x00\x00\x00\x00\x00\x01", "short text": b"\x8c\x01a",
}  # fmt: skip


def pushed(kind: str) -> Maker:
    """A dump that is `size` bytes of one opcode."""

    def make(rng: random.Random, folder: Path, size: int) -> list[str]:
        piece = PUSHES[kind]
        one = b"\x80\x04N" + piece * (size // len(piece))
        if kind == "memo puts of 4 bytes":
            numbers = b"".join(b"r" + struct.pack("<I", n) for n in range(size // 5))
            one = b"\x80\x04N" + numbers
        (folder / "rank_0").write_bytes(one + b".")
        return ["flight", str(folder)]

    return make


def sparse_text(head: bytes, name: str = "rank_0") -> Maker:
    """A sparse file of `size` bytes that claims to be one text."""

    def make(rng: random.Random, folder: Path, size: int) -> list[str]:
        _sparse(folder / name, size, head.replace(b"SIZE", struct.pack("<I", size - 100)))
        return ["flight", str(folder)]

    return make


def json_dump(pattern: bytes) -> Maker:
    """A dump in JSON of `size` bytes that repeats one piece."""

    def make(rng: random.Random, folder: Path, size: int) -> list[str]:
        with (folder / "rank_0.json").open("wb") as file:
            file.write(b'{"entries":[')
            many = pattern * ((1 << 20) // len(pattern))
            for _ in range(max(1, size // len(many))):
                file.write(many)
            file.write(b"0]}")
        return ["flight", str(folder)]

    return make


# Reports and traces.


def gzipped(parts: Any, path: Path, level: int = 1) -> None:
    """Write parts compressed, without ever holding all of them."""
    packer = zlib.compressobj(level, zlib.DEFLATED, 31)
    with path.open("wb") as file:
        for part in parts:
            file.write(packer.compress(part))
        file.write(packer.flush())


def _headers(kind: bytes, each: int, size: int) -> Any:
    info = tarfile.TarInfo("h")
    info.type, info.size = kind, each
    body = (b"%d comment=" % each + b"x" * each)[: each - 1] + b"\n"
    one = info.tobuf(tarfile.USTAR_FORMAT) + body + b"\0" * (-each % 512)
    for _ in range(max(1, size // len(one))):
        yield one
    yield tarfile.TarInfo("run").tobuf() + b"\0" * 1024


def headers(kind: bytes, each: int) -> Maker:
    """An archive for `join` with `size` bytes of headers before its first file."""

    def make(rng: random.Random, folder: Path, size: int) -> list[str]:
        gzipped(_headers(kind, each, size), folder / "run.tar.gz")
        return ["join", str(folder / "run.tar.gz"), str(folder / "run.tar.gz")]

    return make


def many_members(rng: random.Random, folder: Path, size: int) -> list[str]:
    """An archive of `size` bytes of empty members that are no files of a run."""
    one = tarfile.TarInfo("run/else").tobuf()
    gzipped((one for _ in range(size // 512)), folder / "run.tar.gz")
    return ["join", str(folder / "run.tar.gz"), str(folder / "run.tar.gz")]


def ranks_report(rng: random.Random, folder: Path, size: int) -> list[str]:
    """A report in JSON with `size` bytes of ranks."""
    one = json.dumps({"rank": 1, "pid": 5, "stack": [{"file": "/a.py", "line": 3, "function": "f"}]}) + ","
    _long_json(folder / "case.json", '{"v":1,"verdict":{"kind":"none","summary":""},"ranks":[', one, "{}]}", size)
    return ["join", str(folder / "case.json"), str(folder / "case.json")]


def deep_report(rng: random.Random, folder: Path, size: int) -> list[str]:
    """A report in JSON that nests."""
    _long_json(folder / "case.json", '{"v":1,"verdict":', "[", "", size)
    return ["join", str(folder / "case.json"), str(folder / "case.json")]


def small_values(rng: random.Random, folder: Path, size: int) -> list[str]:
    """A report in JSON of `size` bytes of the smallest values."""
    _long_json(folder / "case.json", '{"v":1,"verdict":{},"ranks":[],"x":[', "[],", "[]]}", size)
    return ["join", str(folder / "case.json"), str(folder / "case.json")]


def _long_json(path: Path, head: str, piece: str, tail: str, size: int) -> None:
    many = piece * (1 + (1 << 20) // len(piece))
    with path.open("w") as file:
        file.write(head)
        for _ in range(max(1, size // len(many))):
            file.write(many)
        file.write(tail)


def trace(piece: bytes, *, packed: bool, ranks: int = 2) -> Maker:
    """Traces of `size` bytes after unpacking that repeat one piece as an event."""

    def make(rng: random.Random, folder: Path, size: int) -> list[str]:
        many = piece * (1 + (1 << 20) // len(piece))

        def parts() -> Any:
            yield b'{"traceEvents":['
            for _ in range(max(1, size // len(many))):
                yield many
            yield b"{}]}"

        for rank in range(ranks):
            if packed:
                gzipped(parts(), folder / f"rank{rank}.json.gz")
            else:
                with (folder / f"rank{rank}.json").open("wb") as file:
                    file.writelines(parts())
        return ["slow", str(folder)]

    return make


def packed_log(pattern: bytes) -> Maker:
    """A compressed log of `size` bytes."""

    def make(rng: random.Random, folder: Path, size: int) -> list[str]:
        many = pattern * (1 + (1 << 20) // len(pattern))
        gzipped((many for _ in range(max(1, size // len(many)))), folder / "rank0.log.gz")
        return ["triage", str(folder)]

    return make


def long_header(rng: random.Random, folder: Path, size: int) -> list[str]:
    """A compressed log whose header holds a name of `size` bytes."""
    packed = gzip.compress(b"step 1 loss 2.0\n")
    with (folder / "rank0.log.gz").open("wb") as file:
        file.write(packed[:3] + b"\x08" + packed[4:10])
        file.writelines(b"a" * (1 << 20) for _ in range(max(1, size >> 20)))
        file.write(b"\0" + packed[10:])
    return ["triage", str(folder)]


def empty_dumps(rng: random.Random, folder: Path, size: int) -> list[str]:
    """Many dumps that hold nothing."""
    for rank in range(size):
        (folder / f"rank_{rank}").write_bytes(b'{"entries": [], "pg_config": {}, "version": "2.4"}')
    return ["flight", str(folder)]


# Stacks, curves, configuration.


def threads(rng: random.Random, folder: Path, size: int) -> list[str]:
    """A saved stack with very many threads."""
    names = [f"{rng.choice(('main', 'wait', 'load'))}_{rng.randrange(9)}" for _ in range(64)]
    with (folder / "stacks.txt").open("w") as file:
        for n in range(size):
            head = f"Thread 0x{rng.getrandbits(48):016x} (most recent call first):\n"
            file.write(f'{head}  File "train.py", line {n % 99 + 1} in {names[n % 64]}\n\n')
    return [str(folder / "stacks.txt")]


def deep_values(rng: random.Random, folder: Path, size: int) -> list[str]:
    """A stack in JSON whose local variables nest."""
    begin, end = rng.choice((("[", "]"), ('{"a":', "}")))
    inner = f"{begin * size}1{end * size}"
    frame = f'{{"name": "main", "filename": "train.py", "line": 3, "locals": {inner}}}'
    (folder / "stacks.json").write_text(
        f'[{{"pid": 1, "thread_id": 1, "thread_name": "MainThread", "frames": [{frame}]}}]'
    )
    return [str(folder / "stacks.json")]


def deep_cases(rng: random.Random, folder: Path, size: int) -> list[str]:
    """Cases of which one nests."""
    rows = ['{"output": "NCCL error"}', '{"output": "loss is NaN"}', '{"output":' + rng.choice(("[", '{"a":')) * size]
    rng.shuffle(rows)
    (folder / "cases.jsonl").write_text("\n".join(rows))
    return ["diagnose", "--batch", str(folder / "cases.jsonl")]


def repeated_steps(rng: random.Random, folder: Path, size: int) -> list[str]:
    """A compressed log of `size` bytes of step lines of several shapes."""
    with gzip.open(folder / "rank0.log.gz", "wb", 1) as file:
        step = 0
        while size > 0:
            lines = "".join(f"step {step + n} {rng.choice(('loss', 'lr'))} {rng.random():.4f}\n" for n in range(4_000))
            step += 4_000
            file.write(lines.encode() * 16)
            size -= 16 * len(lines)
    return ["triage", str(folder)]


def aliases(rng: random.Random, folder: Path, size: int) -> list[str]:
    """A configuration whose aliases stand for ever more."""
    fold, merged = rng.randrange(2, 8), rng.random() < 0.5
    rows = ["a0: &a0 {x: 1}"]
    for n in range(1, size):
        many = ", ".join([f"*a{n - 1}"] * fold)
        rows.append(f"a{n}: &a{n} " + (f"{{<<: [{many}]}}" if merged else f"[{many}]"))
    rows += ["distributed_type: MULTI_GPU", f"num_processes: *a{size - 1}"]
    (folder / "accelerate_config.yaml").write_text("\n".join(rows))
    return ["check", str(folder / "accelerate_config.yaml")]


def baseline_of_a_pipe(rng: random.Random, folder: Path, size: int) -> list[str]:
    """A baseline to write that is a pipe which nobody reads, or a link to one."""
    (folder / "train.py").write_text("import torch\n" * size)
    os.mkfifo(folder / "pipe")
    name = "pipe"
    if rng.random() < 0.5:
        name = "known.json"
        (folder / name).symlink_to("pipe")
    return ["check", "--baseline", str(folder / name), "--write-baseline", str(folder / "train.py")]


UNKNOWN_EVENT = b'{"ph":"X","name":"who knows","cat":"else","ts":1,"dur":1,"pid":1,"tid":1},'
EMPTY = b"{},"

KINDS: dict[str, tuple[Maker, int, int]] = {
    **{f"frames of a dump: {name}": (special_in_dump(name), 1, 1) for name in SPECIAL},
    **{f"frames of a log: {name}": (special_in_log(name), 1, 1) for name in SPECIAL},
    **{f"places of a run: {name}": (special_in_run(name), 1, 1) for name in SPECIAL},
    "dumps of one hash": (collisions, 4, 200),
    "dump of one hash, padded": (padded_collision, 1 << 20, 200 << 20),
    "open groups": (open_groups, 40, 3000),
    **{f"dump of {name}": (pushed(name), 1 << 20, 100 << 20) for name in PUSHES},
    "sparse pickle": (sparse_text(b"\x80\x02XSIZE"), 1 << 20, 1 << 30),
    "sparse bytes": (sparse_text(b"\x80\x04BSIZE"), 1 << 20, 1 << 30),
    "sparse JSON": (sparse_text(b'{"entries":"', "rank_0.json"), 1 << 20, 1 << 30),
    "JSON of empty entries": (json_dump(b"{},"), 1 << 20, 200 << 20),
    "JSON of empty lists": (json_dump(b"[],"), 1 << 20, 200 << 20),
    "JSON of lists in lists": (json_dump(b"[[[[]]]],"), 1 << 20, 200 << 20),
    "pax headers": (headers(tarfile.XHDTYPE, 4096), 1 << 20, 1 << 30),
    "large pax headers": (headers(tarfile.XHDTYPE, 100 << 20), 1 << 20, 1 << 30),
    "global headers": (headers(tarfile.XGLTYPE, 65_000), 1 << 20, 1 << 30),
    "long names": (headers(tarfile.GNUTYPE_LONGNAME, 512), 1 << 20, 1 << 30),
    "members of another kind": (many_members, 1 << 20, 1 << 30),
    "report of ranks": (ranks_report, 1 << 20, 200 << 20),
    "report that nests": (deep_report, 1 << 20, 200 << 20),
    "report of small values": (small_values, 1 << 20, 200 << 20),
    "packed trace of unknown events": (trace(UNKNOWN_EVENT, packed=True), 1 << 20, 1 << 30),
    "packed trace of empty events": (trace(EMPTY, packed=True, ranks=1), 1 << 20, 1 << 30),
    "trace of empty events": (trace(EMPTY, packed=False, ranks=1), 1 << 20, 200 << 20),
    "packed zeros": (trace(b"\0", packed=True, ranks=1), 1 << 20, 1 << 30),
    "packed log": (packed_log(b"step 1 loss 2.0\n"), 1 << 20, 2 << 30),
    "long header of a packed log": (long_header, 4 << 20, 200 << 20),
    "dumps that hold nothing": (empty_dumps, 64, 30_000),
    "threads of a saved stack": (threads, 2_000, 200_000),
    "values of a saved stack that nest": (deep_values, 50_000, 2_000_000),
    "case of a batch that nests": (deep_cases, 50_000, 2_000_000),
    "packed log of steps": (repeated_steps, 1 << 20, 1 << 30),
    "aliases of a configuration": (aliases, 12, 30),
    "baseline that is a pipe": (baseline_of_a_pipe, 1, 1_000),
    "packed log without lines": (packed_log(b"\0"), 1 << 20, 4 << 30),
}
"""Name -> maker, size in a run of all tests, size of an attack."""
