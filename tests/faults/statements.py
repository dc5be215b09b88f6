"""What each fault does, as a statement of the program, and what a right answer says of it."""

from __future__ import annotations

import random
import re
from typing import Any

from foreign import ERRNO, REAL, SAID


def made_of(fault: str, chance: random.Random) -> dict[str, Any]:
    """Statement of a fault, kinds of verdict that are right, class and words that a right answer has."""
    number = chance.randint(17, 9000)
    if fault in ("said", "fetched"):
        name, base, message = chance.choice(SAID)
        message = message.replace("{{", "{").replace("}}", "}").replace("{n}", str(number))
        call = "storelib.fetch" if fault == "fetched" else "raise storelib.error"
        words = _quoted(message)
        return {
            "statement": f"{call}({name!r}, {base!r}, {message!r})",
            "kinds": ("dead",),
            "name": name,
            "words": words,
        }
    if fault == "mute":
        name = chance.choice(SAID)[0]
        return {"statement": f"raise storelib.mute({name!r})", "kinds": ("dead",), "name": name}
    if fault in ("real", "worker_said"):  # a class made at run time can't be sent by a worker
        name, message, expression = chance.choice(REAL)
        return {"statement": expression, "kinds": ("dead",), "name": name, "words": _quoted(message)}
    if fault == "errno":
        code, message = chance.choice(ERRNO)
        name = type(OSError(code, message)).__name__
        return {"statement": f"raise OSError({code}, {message!r})", "kinds": ("dead",), "name": name,
                "words": _quoted(message)}  # fmt: skip
    numbers = chance.choice((2, 3, 17, 42))
    simple = {
        "exit_code": (f"__import__('sys').exit({numbers})", ("dead",), rf"(?i)(code|status)\W+{numbers}\b", False),
        "os_exit": (f"__import__('os')._exit({numbers})", ("dead",), rf"(?i)(code|status)\W+{numbers}\b", False),
        "kill": ("__import__('os').kill(__import__('os').getpid(), 9)", ("dead",), "SIGKILL|signal 9|Signal 9", False),
        "segv": ("__import__('ctypes').string_at(0)", ("dead",), "SIGSEGV|[Ss]egmentation|[Ss]ignal 11", True),
        "abort": ("__import__('os').abort()", ("dead",), "SIGABRT|[Aa]bort|[Ss]ignal 6", True),
        "worker_kill": ("__import__('os').kill(__import__('os').getpid(), 9)", ("dead",), "(?i)worker", True),
        "sleep": ("__import__('time').sleep(9999)", ("not_arrived",), "(?i)sleep", True),
        "flock": ("storelib.flock('@FOLDER@/cache.lock')", ("not_arrived",), "(?i)file lock|flock|cache.lock", True),
        "fifo": ("open('@FOLDER@/feed').read()", ("not_arrived",), "(?i)fifo|named pipe|/feed", True),
        "socket": ("storelib.receive()", ("not_arrived",), r"(?i)socket|\brecv\b|connection to", True),
        "child": ("__import__('subprocess').run(['sleep', '9999'])", ("not_arrived",),
                  "(?i)child|subprocess|process `?sleep", True),
        "deadlock": ("storelib.deadlock()", ("not_arrived",), r"(?i)\block\b|prefetch|deadlock|thread", True),
        "queue": ("__import__('queue').Queue().get()", ("not_arrived",), "(?i)queue|lock", True),
        "loop": ("sum(1 for _ in __import__('itertools').count())", ("not_arrived",),
                 "(?i)comput|CPU|runs? Python|busy|loop", True),
        "regex": ("__import__('re').match(r'(a+)+$', 'a' * 60 + 'b')", ("gil_held",), r"(?i)GIL|regular|_sre|\bre\b",
                  True),
        "worker_stuck": ("__import__('time').sleep(9999)", ("not_arrived",), "(?i)worker|DataLoader", True),
        "skip": ("", ("skipped", "replaced", "left", "not_arrived"), "", True),
        "extra": ("", ("extra", "replaced", "not_arrived"), "", True),
        "leave": ("__import__('sys').exit(0)", ("left",), "(?i)finished|left|exit status 0", False),
        "return": ("return", ("left", "skipped", "replaced", "dead"), "", False),
        "slow_save": ("storelib.write_slowly(20)", ("none",), "", False),
        "compile": ("storelib.compile_for(18)", ("none",), "", False),
        "slow_all": ("storelib.write_slowly(12); storelib.compile_for(8)", ("none",), "", False),
        "slow_rank": ("storelib.compile_for(20)", ("none",), "", False),
        "clean": ("pass", ("none",), "", False),
    }  # fmt: skip
    statement, kinds, words, needs = simple[fault]
    return {"statement": statement, "kinds": kinds, "words": words, "needs_line": needs}


def _quoted(message: str) -> str:
    """A regular expression for a part of a message that is long enough to be its own."""
    return re.escape(message[:40]) if message else ""
