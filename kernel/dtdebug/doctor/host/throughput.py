"""Measures write rates to disk and shared memory and the copy rate in memory (`--heavy`), in a child process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

_LIMIT = 12.0
_ASK = """
import json, os, sys, time
found = {}
def write(key, place, size):
    try:
        try:
            fd = os.open(place, os.O_TMPFILE | os.O_RDWR, 0o600)
        except OSError:
            name = os.path.join(place, '.dtdebug-doctor-%d' % os.getpid())
            fd = os.open(name, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
            os.unlink(name)
        room = os.fstatvfs(fd)
        if room.f_bavail * room.f_frsize < 4 * size:
            return
        piece, began, left = os.urandom(1 << 20), time.perf_counter(), size
        while left > 0:
            left -= os.write(fd, piece)
        os.fsync(fd)
        found[key] = size / (time.perf_counter() - began) / 1e6
    except OSError as error:
        found[key + '_why'] = error.strerror
write('shm_rate', '/dev/shm', 64 << 20)
piece = bytearray(64 << 20)
began = time.perf_counter()
for _ in range(3):
    other = bytes(piece)
found['memory_rate'] = 3 * len(piece) / (time.perf_counter() - began) / 1e6
write('disk_rate', sys.argv[1], 64 << 20)
print(json.dumps(found))
"""


def rates(place: str) -> tuple[dict[str, float], str]:
    """Return (million bytes per second by kind, error): 64 MiB each, in unnamed files; skips nearly full disks."""
    words = [sys.executable, "-I", "-S", "-c", _ASK, place if Path(place).is_dir() else "/tmp"]  # noqa: S108
    try:
        done = subprocess.run(words, capture_output=True, timeout=_LIMIT, check=False, start_new_session=True)
        found = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        return {}, f"64 MiB could not be written in {_LIMIT:g} s"
    except (OSError, ValueError):
        return {}, "the child that writes ended without an answer"
    return {k: round(v, 1) for k, v in found.items() if isinstance(v, float)}, ""
