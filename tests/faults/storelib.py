"""Planted beside a program like an installed library: waits for its moment, and keeps the rank's own account.

Reads `plan.json` beside itself. A witness writes which places the main thread was seen at after the fault.
"""

import atexit
import contextlib
import json
import os
import sys
import threading
import time
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
PLAN = json.loads((HERE / "plan.json").read_text())
RANK = int(os.environ.get("RANK", "-1"))
FOLDER = Path(PLAN["folder"])
_met = Counter()
_seen = set()
_main = threading.main_thread().ident


def now():
    """True once: on the rank and in the visit of the plan; on all ranks where the plan has none."""
    if PLAN["rank"] not in (RANK, None):
        return False
    _met["now"] += 1
    if _met["now"] != PLAN["visit"]:
        return False
    _write("fired" if PLAN["rank"] is not None else f"fired{RANK}", str(time.time()))
    _write(f"own{RANK}.json", json.dumps(_places(sys._getframe(1))))
    return True


def error(name, base, message):
    """An exception of a class of this name."""
    module, _, short = name.rpartition(".")
    parent = {"OSError": OSError}.get(base) or getattr(__builtins__, base, None) or __builtins__[base]
    return type(short, (parent,), {"__module__": module, "__qualname__": short})(message)


def mute(name):
    """An exception that can't be shown."""

    def refuse(self):
        raise RuntimeError("no text")

    module, _, short = name.rpartition(".")
    return type(short, (Exception,), {"__module__": module, "__qualname__": short, "__str__": refuse})("x")


def fetch(name, base, message):
    """Raises some calls below the user's line."""
    return _Session().get(name, base, message)


class _Session:
    def get(self, *what):
        try:
            return self._send()
        except OSError as broken:
            raise error(*what) from broken

    def _send(self):
        raise ConnectionResetError(104, "Connection reset by peer")


def write_slowly(seconds):
    """A checkpoint on a slow disk: bytes go on to be written."""
    with (FOLDER / f"slow{RANK}.bin").open("wb") as file:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            file.write(bytes(200_000))
            file.flush()
            os.fsync(file.fileno())
            time.sleep(0.2)
    (FOLDER / f"slow{RANK}.bin").unlink()


def compile_for(seconds):
    """Work as a compiler does: much Python, here and in a child."""
    import subprocess

    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for size in range(40):
            compile("\n".join(f"x{i} = {i} * {size}" for i in range(200)), "<generated>", "exec")
        spin = "import time\nt = time.monotonic() + 1.5\nwhile time.monotonic() < t: sum(range(1000))"
        subprocess.run([sys.executable, "-c", spin], check=True)


def flock(path):
    """Waits for a lock that another process holds."""
    import fcntl

    with Path(path).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)


def receive():
    """Waits for bytes of a server that sends none."""
    import socket

    server = socket.create_server(("127.0.0.1", 0))
    with socket.create_connection(server.getsockname()) as client:
        client.recv(8)


def deadlock():
    """Two threads, two locks, two orders."""
    one, two = threading.Lock(), threading.Lock()
    ready = threading.Barrier(2)

    def other():
        with two:
            ready.wait()
            with one:
                pass

    threading.Thread(target=other, daemon=True, name="prefetch").start()
    with one:
        ready.wait()
        with two:
            pass


def _places(frame):
    found = []
    while frame is not None:
        if not frame.f_code.co_filename.startswith("<"):
            found.append((os.path.realpath(frame.f_code.co_filename), frame.f_lineno))
        frame = frame.f_back
    return found


def _witness():
    known = 0
    while True:
        time.sleep(0.25)
        if (FOLDER / "fired").exists():
            frame = sys._current_frames().get(_main)
            if frame is not None:
                _seen.update(_places(frame))
            if len(_seen) != known:
                known = len(_seen)
                _write(f"seen{RANK}.json", json.dumps(sorted(_seen)))


def _write(name, text):
    partial = FOLDER / f".{name}.{RANK}.{os.getpid()}"
    partial.write_text(text)
    partial.rename(FOLDER / name)


def _trace(frame, event, argument):
    if PLAN["programs"] not in frame.f_code.co_filename:
        return None

    def local(frame, event, argument):
        if event == "line":
            _met[f"{os.path.relpath(frame.f_code.co_filename, PLAN['programs'])}:{frame.f_lineno}"] += 1
        return local

    return local


def _close():
    import torch

    entries = []
    with contextlib.suppress(Exception):
        entries = json.loads(torch._C._distributed_c10d._dump_fr_trace_json(True, False)).get("entries", [])
    ops = sorted({entry["profiling_name"].removeprefix("gloo:") for entry in entries})
    _write(f"traced{RANK}.json", json.dumps({"lines": _met, "ops": ops}))


if PLAN.get("trace"):
    atexit.register(_close)
    outer = sys._getframe(1)
    while "importlib" in outer.f_code.co_filename:
        outer = outer.f_back
    outer.f_trace = _trace(outer, "call", None)
    sys.settrace(_trace)
elif threading.current_thread() is threading.main_thread():
    threading.Thread(target=_witness, daemon=True, name="metrics").start()
