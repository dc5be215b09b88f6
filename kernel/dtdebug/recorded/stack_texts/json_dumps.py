"""Reads what `py-spy dump --json` prints, for one process or several."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from dtdebug.recorded.stack_texts.processes import TextProcess, TextThread

_MOST = 1 << 14
_FRAMES = 256


class _Frame(msgspec.Struct):
    name: str
    filename: str
    line: int = 0
    module: str | None = None


class _Process(msgspec.Struct):
    pid: int | None = None
    command_line: str = ""


class _Thread(msgspec.Struct):
    frames: list[_Frame]
    pid: int | None = None
    thread_id: int = 0
    os_thread_id: int | None = None
    thread_name: str | None = None
    process_info: _Process | None = None


def processes(text: str) -> list[TextProcess] | None:
    """Return the processes of a text that is JSON of py-spy, one array or several; None for other text."""
    if not text.lstrip().startswith("[") or '"frames"' not in text:
        return None
    try:
        return [process for document in _documents(text) for process in _of_document(document)]
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def _documents(text: str) -> Iterator[list[_Thread]]:
    """Yield the arrays of a text, which follow each other."""
    import json

    decoder, at = json.JSONDecoder(), 0
    for _ in range(_MOST):
        while at < len(text) and text[at].isspace():
            at += 1
        if at >= len(text):
            return
        found: Any
        found, at = decoder.raw_decode(text, at)
        rows = found if found and isinstance(found[0], list) else [found]
        for row in rows:
            yield msgspec.convert(row, list[_Thread])


def _of_document(threads: list[_Thread]) -> Iterator[TextProcess]:
    found: dict[int | None, TextProcess] = {}
    for t in threads:
        process = found.setdefault(t.pid, TextProcess(tool="py-spy --json", pid=t.pid))
        process.command = process.command or (t.process_info.command_line if t.process_info else "")
        thread = TextThread(name=t.thread_name or "", number=str(t.thread_id), lwp=t.os_thread_id)
        thread.frames = [(f.filename, f.line, f.name.rpartition(".")[2], "") for f in t.frames if not f.module][
            :_FRAMES
        ]
        for frame in t.frames:
            if not frame.module or len(thread.native) == _FRAMES:
                break
            thread.native.append(frame.name[:200])
        process.threads.append(thread)
    yield from found.values()
