"""Emulates small programs used in scripts: `head -n 1`, `dirname`, `scontrol show hostnames`.

Each takes its arguments and standard input and returns its output, or None if that is unknown without running it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path, PurePath

from dtdebug.doctor.launch import hostfile

_MOST = 4096
_FIELD = re.compile(r"\{ ?print \$(\d{1,2});? ?\}|NR ?== ?(\d{1,3})(?: ?\{ ?print(?: \$0)? ?\})?")
_ONE_LINE = re.compile(r"(\d{1,4})p")
_RANGE = re.compile(r"-?\d{1,6}")


def output(words: Sequence[str], given: str, here: str, folder: str) -> str | None:
    """Return a program's output, or None if unknown; `here` is this host's name, `folder` the working directory."""
    name = PurePath(words[0]).name
    rest = list(words[1:])
    if any("$" in word or "`" in word for word in rest) and name not in ("awk", "gawk", "mawk"):
        return None
    if name in ("hostname", "uname"):
        return here if name == "hostname" or rest == ["-n"] else None
    if name == "srun" and "hostname" in rest:
        return _of_another(rest)
    if name == "pwd":
        return folder
    tool = _TOOLS.get(name)
    return tool(rest, given) if tool is not None else None


def _of_another(words: list[str]) -> str | None:
    """Return HOST of `srun -w HOST hostname --ip-address`: its name leads to the same address."""
    for index, word in enumerate(words[:-1]):
        if word in ("-w", "--nodelist"):
            return words[index + 1]
        if word.startswith("--nodelist="):
            return word.partition("=")[2]
    return None


def _echo(words: list[str], _: str) -> str:
    while words and re.fullmatch(r"-[neE]{1,3}", words[0]):
        words = words[1:]
    return " ".join(words)


def _printf(words: list[str], _: str) -> str | None:
    if not words:
        return None
    form = words[0].removesuffix("\\n").removesuffix("\n")
    if form == "%s":
        ends = "\n" if words[0] != form else ""
        return ends.join(words[1:])
    return form if "%" not in form and "\\" not in form and len(words) == 1 else None


def _dirname(words: list[str], _: str) -> str | None:
    path = [w for w in words if w != "--"]
    return (path[0].rstrip("/").rpartition("/")[0] or ("/" if path[0].startswith("/") else ".")) if path else None


def _basename(words: list[str], _: str) -> str | None:
    path = [w for w in words if w != "--"]
    return PurePath(path[0]).name.removesuffix(path[1] if len(path) == 2 else "") if path else None


def _realpath(words: list[str], _: str) -> str | None:
    path = [w for w in words if not w.startswith("-")]
    return str(Path(path[0]).absolute()) if len(path) == 1 else None


def _scontrol(words: list[str], _: str) -> str | None:
    if words[:1] != ["show"] or len(words) != 3 or words[1] not in ("hostname", "hostnames"):
        return None
    return "\n".join(hostfile.slurm(words[2])) or None


def _count(words: list[str], default: int = 10) -> int | None:
    text = "".join(words).removeprefix("-").removeprefix("n").removeprefix("=").removeprefix("-lines=") or str(default)
    return int(text) if text.isdecimal() and len(text) < 5 else None


def _head(words: list[str], given: str) -> str | None:
    count = _count(words)
    return None if count is None else "\n".join(given.splitlines()[:count])


def _tail(words: list[str], given: str) -> str | None:
    plus = re.fullmatch(r"-?n? ?\+(\d{1,4})", " ".join(words))
    if plus:
        return "\n".join(given.splitlines()[int(plus[1]) - 1 :])
    count = _count(words)
    return None if count is None else "\n".join(given.splitlines()[-count:])


def _wc(words: list[str], given: str) -> str | None:
    return {"-l": str(len(given.splitlines())), "-w": str(len(given.split()))}.get(" ".join(words))


def _cut(words: list[str], given: str) -> str | None:
    found = re.fullmatch(r"-d ?(\S| ) ?-f ?(\d{1,3})", " ".join(words))
    if not found:
        return None
    at = int(found[2]) - 1
    rows = [line.split(found[1]) for line in given.splitlines()]
    return "\n".join(row[min(at, len(row) - 1)] if len(row) == 1 else "".join(row[at : at + 1]) for row in rows)


def _tr(words: list[str], given: str) -> str | None:
    if len(words) != 2:
        return None
    one, other = (w.replace("\\n", "\n") for w in words)
    if one == "-d":
        return "".join(c for c in given if c not in other)
    if (one, other) in (("[:upper:]", "[:lower:]"), ("A-Z", "a-z")):
        return given.lower()
    return given.replace(one, other) if len(one) == len(other) == 1 else None


def _sed_line(words: list[str], given: str) -> str | None:
    found = _ONE_LINE.fullmatch(words[1]) if len(words) == 2 and words[0] == "-n" else None
    return "".join(given.splitlines()[int(found[1]) - 1 : int(found[1])]) if found and int(found[1]) else None


def _awk(words: list[str], given: str) -> str | None:
    between = None
    if words and words[0].startswith("-F"):
        between, words = (words[0][2:], words[1:]) if len(words[0]) > 2 else ("".join(words[1:2]), words[2:])
    found = _FIELD.fullmatch(words[0].strip()) if len(words) == 1 else None
    if not found:
        return None
    lines = given.splitlines()
    if found[2]:
        return "".join(lines[int(found[2]) - 1 : int(found[2])]) if int(found[2]) else None
    at = int(found[1])
    return "\n".join("".join(line.split(between or None)[at - 1 : at]) if at else line for line in lines)


def _seq(words: list[str], _: str) -> str | None:
    if not words or len(words) > 2 or not all(_RANGE.fullmatch(w) for w in words):
        return None
    first, last = (1, int(words[0])) if len(words) == 1 else (int(words[0]), int(words[1]))
    return "\n".join(map(str, range(first, last + 1))) if last - first < _MOST else None


def _sort(words: list[str], given: str) -> str | None:
    rows = sorted(given.splitlines())
    return {"": "\n".join(rows), "-u": "\n".join(dict.fromkeys(rows))}.get(" ".join(words))


def _uniq(words: list[str], given: str) -> str | None:
    return "\n".join(dict.fromkeys(given.splitlines())) if not words else None


def _paste(words: list[str], given: str) -> str | None:
    found = re.fullmatch(r"-sd ?(\S)(?: -)?|-s -d ?(\S)(?: -)?", " ".join(words))
    return (found[1] or found[2]).join(given.splitlines()) if found else None


_TOOLS: dict[str, Callable[[list[str], str], str | None]] = {
    "echo": _echo, "printf": _printf, "dirname": _dirname, "basename": _basename, "realpath": _realpath,
    "readlink": _realpath, "scontrol": _scontrol, "head": _head, "tail": _tail, "wc": _wc, "cut": _cut, "tr": _tr,
    "sed": _sed_line, "awk": _awk, "gawk": _awk, "mawk": _awk, "seq": _seq, "sort": _sort, "uniq": _uniq,
    "paste": _paste,
}  # fmt: skip
