"""Measures the language server's cost next to others: start, open, edit, hover, memory, on a file of 3,000 lines.

    python benchmarks/editor.py [--rounds 5] [FILE]

A change is a new line in the middle of the file, or a letter before a name that is assigned there. A FILE is opened at
its place, so that modules of its project are read.
The peers run in the same minutes on the same machine, so that ratios hold where times do not.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import queue
import re
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

LINES = 3_000
MISTAKES = """

def finish(world_size):
    if dist.get_rank() == 0:
        dist.barrier()
    parts = [torch.zeros(3)] * world_size


if __name__ == "__main__":
    finish(2)
"""
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
"""Modules are compiled, as pip installs them."""
AIMS = {"start": 400, "open": 100, "line cpu": 30, "name cpu": 30, "hover": 5, "memory": 80}
_ASSIGNED = re.compile(r"\s+(?=\w+ = )")
CAPABILITIES = {
    "general": {"positionEncodings": ["utf-16", "utf-8"]},
    "textDocument": {
        "publishDiagnostics": {"codeDescriptionSupport": True, "dataSupport": True},
        "hover": {"contentFormat": ["markdown"]},
        "synchronization": {},
    },
}


def sample() -> str:
    """Return the beginning of a long real module that uses torch.distributed, with mistakes at its end."""
    file = Path(sysconfig.get_paths()["purelib"], "torch", "distributed", "distributed_c10d.py")
    text = file.read_text(encoding="utf-8")
    end = max(s.lineno - 1 for s in ast.parse(text).body if s.lineno <= LINES and not getattr(s, "decorator_list", []))
    head = "".join(text.splitlines(keepends=True)[:end])
    return f"import torch\nimport torch.distributed as dist\n{head}{MISTAKES}"


class Peer:
    """Server, spoken to over its pipes."""

    def __init__(self, command: list[str]) -> None:
        self.began = time.perf_counter()
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env=ENVIRONMENT,
        )
        self.arrived: queue.Queue[dict[str, Any]] = queue.Queue()
        self.number = 0
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        stream = self.process.stdout
        assert stream is not None
        while header := stream.readline():
            length = int(header.split(b":")[1]) if header.lower().startswith(b"content-length") else 0
            if length:
                while stream.readline().strip():
                    pass
                self.arrived.put(json.loads(stream.read(length)))

    def send(self, method: str, params: Any, *, request: bool = False) -> int:
        """Send a message; return the number of a request."""
        self.number += request
        message = {"jsonrpc": "2.0", "method": method, "params": params} | ({"id": self.number} if request else {})
        body = json.dumps(message).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.process.stdin.flush()
        return self.number

    def wait(self, accept: Any, seconds: float = 120) -> dict[str, Any]:
        """Return the first accepted message; requests of the server get an empty answer."""
        end = time.monotonic() + seconds
        while True:
            message = self.arrived.get(timeout=max(end - time.monotonic(), 0.01))
            if "id" in message and "method" in message:
                body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": None}).encode()
                assert self.process.stdin is not None
                self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
                self.process.stdin.flush()
            elif accept(message):
                return message

    def ask(self, method: str, params: Any) -> dict[str, Any]:
        """Return the answer to a request."""
        number = self.send(method, params, request=True)
        return self.wait(lambda m: m.get("id") == number and "method" not in m)

    def diagnostics(self) -> dict[str, Any]:
        """Return the next diagnostics that are pushed."""
        return self.wait(lambda m: m.get("method") == "textDocument/publishDiagnostics")

    def memory(self) -> float:
        """Return resident megabytes."""
        rows = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8").splitlines()
        return next(int(row.split()[1]) / 1024 for row in rows if row.startswith("VmRSS"))

    def cpu(self) -> float:
        """Return the CPU milliseconds of all its threads, which are steadier than the clock on a shared machine."""
        tasks = Path(f"/proc/{self.process.pid}/task").glob("*/schedstat")
        return sum(int(t.read_text(encoding="utf-8").split()[0]) for t in tasks) / 1e6

    def end(self) -> None:
        """End the server."""
        self.process.kill()
        self.process.wait(10)


def changes(lines: list[str], kind: str) -> Iterator[dict[str, Any]]:
    """Yield changes from the middle of a text on, which are made in its lines too."""
    at = len(lines) // 2
    while True:
        at += 1
        found = _ASSIGNED.match(lines[at])
        if kind == "line" and not lines[at].strip():
            where, new = {"line": at, "character": 0}, "\n"
            lines.insert(at, "")
        elif kind == "name" and found is not None:
            where, new = {"line": at, "character": found.end()}, "q"
            lines[at] = f"{found[0]}q{lines[at][found.end() :]}"
        else:
            continue
        yield {"range": {"start": where, "end": where}, "text": new}


def measure(command: list[str], text: str, uri: str, edits: int) -> dict[str, float]:
    """Run one server once; times in milliseconds, memory in megabytes."""
    peer = Peer(command)
    found: dict[str, float] = {}
    try:
        peer.ask("initialize", {"processId": None, "rootUri": None, "capabilities": CAPABILITIES})
        found["start"] = time.perf_counter() - peer.began
        processor = {"start": peer.cpu()}
        peer.send("initialized", {})
        began = time.perf_counter()
        item = {"uri": uri, "languageId": "python", "version": 1, "text": text}
        peer.send("textDocument/didOpen", {"textDocument": item})
        peer.diagnostics()
        found["open"] = time.perf_counter() - began
        time.sleep(1.5)
        lines, version = text.split("\n"), 1
        for kind in ("line", "name"):
            times = []
            before = peer.cpu()
            for change in islice(changes(lines, kind), edits):
                version += 1
                began = time.perf_counter()
                identifier = {"uri": uri, "version": version}
                peer.send("textDocument/didChange", {"textDocument": identifier, "contentChanges": [change]})
                peer.diagnostics()
                times.append(time.perf_counter() - began)
            found[kind] = statistics.median(times)
            processor[kind] = (peer.cpu() - before) / edits
        place, row = next((n, row) for n, row in enumerate(lines) if "dist." in row)
        position = {"textDocument": {"uri": uri}, "position": {"line": place, "character": row.index("dist.") + 6}}
        times = []
        for _ in range(10):
            began = time.perf_counter()
            peer.ask("textDocument/hover", position)
            times.append(time.perf_counter() - began)
        found["first hover"], found["hover"] = times[0], statistics.median(times)
        found = {name: seconds * 1000 for name, seconds in found.items()}
        found |= {f"{name} cpu": spent for name, spent in processor.items()}
        found["memory"] = peer.memory()
    finally:
        peer.end()
    return found


def main() -> None:
    """Print medians of all rounds, and their ratios to each peer's."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--edits", type=int, default=10)
    parser.add_argument("file", nargs="?", type=Path)
    options = parser.parse_args()
    text = options.file.read_text(encoding="utf-8") if options.file else sample()
    uri = options.file.absolute().as_uri() if options.file else "file:///bench/train.py"
    servers = {"dtdebug": [sys.executable, "-m", "dtdebug_lsp"]}
    if ruff := shutil.which("ruff", path=str(Path(sys.executable).parent)):
        servers["ruff"] = [ruff, "server"]
    servers["pylsp"] = [sys.executable, "-m", "pylsp"]
    print(f"{text.count(chr(10))} lines, {len(text)} characters, {options.rounds} rounds")
    rows: dict[str, list[dict[str, float]]] = {name: [] for name in servers}
    with tempfile.TemporaryDirectory() as compiled:
        ENVIRONMENT["PYTHONPYCACHEPREFIX"] = compiled
        for round_number in range(options.rounds + 1):
            for name, command in servers.items():
                found = measure(command, text, uri, options.edits)
                if round_number:  # the first one compiles
                    rows[name].append(found)
    middle = {n: {k: statistics.median(r[k] for r in found) for k in found[0]} for n, found in rows.items()}
    print(f"{'':>12}" + "".join(f"{name:>10}" for name in servers) + f"{'aim':>8}" + "   ratio to peers")
    for key, value in middle["dtdebug"].items():
        unit = "MB" if key == "memory" else "ms"
        ratios = ", ".join(f"{value / middle[n][key]:.2f} {n}" for n in servers if n != "dtdebug" and middle[n][key])
        figures = "".join(f"{middle[n][key]:>10.1f}" for n in servers)
        print(f"{key:>9} {unit}{figures}{AIMS.get(key, ''):>8}   {ratios}")


if __name__ == "__main__":
    main()
