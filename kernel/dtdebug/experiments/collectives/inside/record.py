"""Records the collectives of this rank: call, place, and a fingerprint of each input.

Results of collectives are kept as well, up to a limit, so that the rank can be replayed alone.
"""

from __future__ import annotations

import atexit
import functools
import itertools
import os
import socket
import sys
import threading
import time
import zlib
from collections import deque
from contextlib import suppress
from typing import Any

import msgspec

from dtdebug.experiments.collectives.inside import call_sites, dispatcher_hook, gpu_hash, object_hash
from dtdebug.experiments.collectives.inside.gpu_hash import PendingPrints
from dtdebug.experiments.collectives.inside.groups import my_rank
from dtdebug.experiments.collectives.inside.install import complain
from dtdebug.experiments.collectives.inside.tensor_hash import in_line
from dtdebug.experiments.collectives.recording_format import KEPT, SEGMENT, VERSION, Key, RecordingEnd, RecordingHeader
from dtdebug.privacy.sanitize import allowed_variables, arguments, clean

_UNDER_WAY, _LAST = 1024, 2.0
"""Maximum calls with pending GPU fingerprints; seconds to wait for them at the end."""
_PATIENCE = 10.0
"""Seconds to wait for an asynchronous collective, to keep its result."""
_encode = msgspec.json.Encoder().encode
_ROOM = 1024
"""Bytes reserved for the end of the recording."""
_WAIT, _MESSAGES = ("monitored_barrier_",), ("send", "recv_", "recv_any_source_")
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)


def begin(told: dict[str, Any], torch: Any) -> None:
    """Record from now on."""
    dispatcher_hook.install(torch)
    recorder = Recorder(told, torch)
    dispatcher_hook.add(recorder)
    atexit.register(recorder.finish)
    os.register_at_fork(after_in_child=recorder.reset_files)


class Recorder:
    """Listener on the transport that writes the recording."""

    name = "the recording"

    def __init__(self, told: dict[str, Any], torch: Any) -> None:
        self._folder, self._torch = str(told["folder"]), torch
        self._limit, self._hashes = int(told.get("data", 0)), bool(told.get("hashes", True))
        self._lock = threading.Lock()
        self._seed = int(torch.initial_seed())
        self._late: dict[int, tuple[Any, int, list[Any]]] = {}
        if self._limit:
            self._watch_waits()
        self.reset_files()

    def reset_files(self) -> None:
        """Start new files in a forked process."""
        self._name, self._head, self._file, self._data, self._end = "", -1, -1, -1, -1
        self._stopped = ""
        self._segment, self._written, self._kept, self._digest = 0, 0, 0, 0
        self._keys: dict[tuple[Any, ...], tuple[int, bytes]] = {}
        self._segments: list[int] = []
        self._spent, self._count, self._bytes = 0.0, 0, 0
        self._data_to = 0
        self._full = not self._limit
        self._late.clear()
        self._open_prints: deque[tuple[int, bytes, PendingPrints | list[int | None]]] = deque()
        self._resolved = 0

    def before(self, call: dispatcher_hook.OwnCall) -> None:
        """Write the call before it begins: one that hangs is the last one recorded."""
        try:
            self._record(call)
        except Exception as error:
            self._stopped, self._full = _format_error(error), True
            self._write_end()
            raise

    def _record(self, call: dispatcher_hook.OwnCall) -> None:
        begin = time.perf_counter()
        with self._lock:
            if not self._name:
                self._open(call)
            inputs = call.inputs
            prints = self._prints(call, inputs) if self._hashes else []
            self._bytes += sum(t.numel() * t.element_size() for t in inputs)
            known: list[int | None] = prints if isinstance(prints, list) else [None for _ in inputs]
            key = self._line(call_key(call, inputs), thread_name(), call.number, known)
            self._count += 1
            self._open_prints.append((call.number, key, prints))
            self._resolve(_PATIENCE if len(self._open_prints) > _UNDER_WAY else 0.0)
        self._spent += time.perf_counter() - begin

    def _resolve(self, patience: float) -> None:
        """Add the fingerprints that have arrived, in call order: each goes into the digest."""
        until = time.monotonic() + patience
        while self._open_prints:
            number, key, prints = self._open_prints[0]
            if not isinstance(prints, list):
                if not prints.ready(max(0.0, until - time.monotonic())):
                    return
                prints = prints.prints()
                self._add(_encode(["p", number, prints]) + b"\n")
            self._open_prints.popleft()
            self._digest = zlib.crc32(key + _encode(prints) + b"]", self._digest)
            self._resolved += 1
            if self._resolved % 10 ** max(3, len(str(self._resolved)) - 2) == 0:
                append(self._head, _encode([self._resolved, self._digest]) + b"\n")

    def _add(self, line: bytes) -> None:
        append(self._file, line)
        self._written += len(line)

    def after(self, call: dispatcher_hook.OwnCall, result: Any) -> None:
        """Keep the result of a call."""
        if self._full or not (outputs := call.outputs):
            return
        try:
            self._gave(call, outputs, self._work(result))
        except Exception as error:
            self._stop(_format_error(error))

    def _gave(self, call: dispatcher_hook.OwnCall, outputs: list[Any], work: Any) -> None:
        if call.op.startswith("recv") and work is not None:  # waiting here may wait for a send that comes later
            self._late[id(work)] = (work, call.number, outputs)
        elif self._wait_for(work, waits=call.value("async_op") is False or "reduce_scatter" in call.op):
            self._keep(call.number, outputs)
        else:
            self._stop(f"an asynchronous collective took more than {_PATIENCE:.0f} s")

    def finish(self) -> None:
        """Write how the recording ended and its cost."""
        if self._stopped:
            return
        try:
            for _, number, outputs in list(self._late.values()):
                self._keep(number, outputs)
        except Exception as error:
            self._stop(_format_error(error))
        self._write_end()

    def _write_end(self) -> None:
        if self._end < 0:
            return
        with suppress(Exception):  # those that have not arrived are missing from the record
            self._resolve(_LAST)
        told = RecordingEnd(
            collectives=self._count, bytes=self._bytes, seconds=round(self._spent, 4), data=self._kept,
            data_to=self._data_to, full=self._full and bool(self._limit), stopped=self._stopped[:300],
        )  # fmt: skip
        os.pwrite(self._end, _encode(told).ljust(_ROOM), 0)

    def _prints(self, call: dispatcher_hook.OwnCall, inputs: list[Any]) -> PendingPrints | list[int | None]:
        if any(t.device.type == "cuda" for t in inputs) and self._torch.cuda.is_current_stream_capturing():
            raise RuntimeError("a CUDA graph is captured; its collectives are not seen when it is replayed")
        if self._full and gpu_hash.can_follow(inputs) and not object_hash.carries_objects(call, inputs, self._torch):
            return PendingPrints(inputs, self._torch)
        return object_hash.fingerprints(call, inputs, self._torch)

    def _open(self, call: dispatcher_hook.OwnCall) -> None:
        rank, world = my_rank() or (call.group.rank, len(call.group.ranks))
        for start in itertools.count(int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") or 0)):
            self._name = f"rank-{rank}.{start}"
            try:
                self._head = os.open(f"{self._folder}/{self._name}.head.jsonl", _FLAGS, 0o600)
                break
            except FileExistsError:
                if start > 999:
                    raise
        header = RecordingHeader(
            v=VERSION,
            rank=rank,
            world=world,
            command=tuple(clean(word) for word in arguments(sys.orig_argv)),
            folder=os.getcwd(),  # noqa: PTH109 - pathlib takes milliseconds to import
            environment=allowed_variables(os.environ),
            versions={"torch": str(self._torch.__version__), "python": sys.version.split()[0]},
            host=socket.gethostname(),
            started=time.time(),
            seed=self._seed,
        )
        append(self._head, _encode(header) + b"\n")
        end = os.open(f"{self._folder}/{self._name}.cost.json", _FLAGS, 0o600)
        append(end, b" " * _ROOM)
        self._end = end

    def _line(self, key: tuple[Any, ...], thread: str, call: int, prints: list[int | None]) -> bytes:
        """Write the record; return the encoded key of its calls, for the digest."""
        if self._file < 0 or self._written > SEGMENT:
            self._resolve(_LAST)  # they belong in the segment of their calls
            self._next()
        known, text = self._keys.get((thread, *key)), b""
        if known is None:
            number = len(self._keys)
            known = self._keys[thread, *key] = number, b"[" + _encode(key[:-2]) + b","
            op, group, ordinal, shapes, dtypes, peer, tag, waits, file, line = key
            text = _encode(
                Key(
                    k=number, op=op, group=group, ordinal=ordinal, shapes=shapes, dtypes=dtypes,
                    file=file, line=line, peer=peer, tag=tag, waits=waits, thread=thread,
                )
            ) + b"\n"  # fmt: skip
        text += _encode((call, known[0], prints)) + b"\n"
        self._add(text)
        return known[1]

    def _next(self) -> None:
        """Start another segment; the first and the last ones are kept."""
        if self._file >= 0:
            os.close(self._file)
            self._segment += 1
        self._file = os.open(f"{self._folder}/{self._name}.{self._segment}.jsonl", _FLAGS, 0o600)
        self._segments.append(self._segment)
        self._keys, self._written = {}, 0
        if len(self._segments) > KEPT:
            os.unlink(f"{self._folder}/{self._name}.{self._segments.pop(1)}.jsonl")  # noqa: PTH108

    def _keep(self, number: int, outputs: list[Any]) -> None:
        begin = time.perf_counter()
        with self._lock:
            size = sum(t.numel() * t.element_size() for t in outputs)
            if self._full:
                return
            if self._kept + size > self._limit:
                self._full = True
                return
            if self._data < 0:
                self._data = os.open(f"{self._folder}/{self._name}.data", _FLAGS, 0o600)
            places = []
            for tensor in outputs:
                offset = self._kept
                for chunk in raw(tensor, self._torch):
                    written = 0
                    while written < len(chunk):
                        written += os.write(self._data, chunk[written:])
                    self._kept += written
                places.append([offset, self._kept - offset])
            self._add(_encode(["d", number, places]) + b"\n")
            self._data_to = number
        self._spent += time.perf_counter() - begin

    def _stop(self, why: str) -> None:
        self._full = True
        self._late.clear()
        complain(f"what collectives give is kept no longer: {why}; replay ends there")

    def _work(self, result: Any) -> Any:
        last = result[-1] if isinstance(result, tuple) else result
        return self._torch.distributed.Work.unbox(last) if type(last).__name__ == "ScriptObject" else None

    def _wait_for(self, work: Any, *, waits: bool) -> bool:
        """Wait for a work; without a deadline only if the program would wait, too, or the work ends only by a wait.

        That is reduce_scatter with gloo: `is_completed` stays false until then.
        """
        if work is None:
            return True
        if waits:
            work.wait()
            return True
        begin = time.perf_counter()
        pause, until = 5e-5, time.monotonic() + _PATIENCE
        while not work.is_completed():
            if time.monotonic() > until:
                return False
            time.sleep(pause)
            pause = min(pause * 1.5, 2e-3)
        self._spent += time.perf_counter() - begin
        return True

    def _watch_waits(self) -> None:
        """Keep received messages once the program has waited for them."""
        work_type = self._torch.distributed.Work
        original = work_type.wait

        def wait(work: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(work, *args, **kwargs)
            late = self._late.pop(id(work), None)
            if late is not None:
                try:
                    self._keep(late[1], late[2])
                except Exception as error:
                    self._stop(_format_error(error))
            return result

        work_type.wait = wait


def append(handle: int, text: bytes) -> None:
    """Write all of it or nothing: half a line would corrupt the next one."""
    written = os.write(handle, text)
    try:
        while written < len(text):
            written += os.write(handle, text[written:])
    except OSError:
        os.ftruncate(handle, os.lseek(handle, -written, os.SEEK_CUR))
        raise


def _format_error(error: Exception) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else f"{type(error).__name__}: {error}"


def thread_name() -> str:
    """Return the name of a thread that the program started; "" for the main thread and those of torch."""
    here = threading.current_thread()
    main = here is threading.main_thread() or isinstance(here, threading._DummyThread)  # noqa: SLF001 - has no other name
    return "" if main else here.name[:200]


def call_key(call: dispatcher_hook.OwnCall, inputs: list[Any] | None = None) -> tuple[Any, ...]:
    """Return the properties shared by similar collectives, as in `Key`; the last two are file and line."""
    tensors, group = (call.inputs if inputs is None else inputs) or call.outputs, call.group
    root = call.value("root_rank", call.value("dst", call.value("src")))
    peer = group.ranks[root] if isinstance(root, int) and 0 <= root < len(group.ranks) else None
    return (
        call.op,
        group.ranks,
        group.ordinal,
        tuple(tuple(t.shape) for t in tensors),
        tuple(_dtype(t.dtype) for t in tensors),
        peer,
        call.value("tag") or 0,
        call.value("async_op") is False or call.op in _WAIT or (call.op in _MESSAGES and call_sites.is_blocking()),
        *call.site(),
    )


@functools.cache
def _dtype(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


def raw(tensor: Any, torch: Any) -> list[memoryview]:
    """Return the tensor's bytes."""
    plain = tensor.detach()
    if not plain.numel():
        return []
    data = in_line(plain, torch).view(torch.uint8).cpu()
    if data.data_ptr() == plain.data_ptr():
        data = data.clone()  # a tensor exported to NumPy can't be resized any more, as FSDP1 does with its parameters
    return [memoryview(data.numpy())]
