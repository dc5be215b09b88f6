"""Expands the variables of a shell script as far as they are known; runs nothing.

What is unknown stays as written, with its `$`. Of the commands in `$(...)` only a few common ones are recognised.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath

from dtdebug.doctor.launch import hostfile
from dtdebug_taxonomy.source.shell.commands import Word

_ROUND = r"\((?:[^()]++|\((?:[^()]++|\((?:[^()]++|\([^()]*+\))*+\))*+\))*+\)"
_CURLY = r"\{(?:[^{}]++|\{(?:[^{}]++|\{[^{}]*+\})*+\})*+\}"
_USE = re.compile(rf"\$(?:{_ROUND}|{_CURLY}|[A-Za-z_]\w*|[\d@*#])|`[^`]*+`", re.ASCII)
"""One expansion; brackets may be nested a few levels deep."""
_PIECE = re.compile(rf"(?:{_USE.pattern}|\S)++", re.ASCII)
_NAMED = re.compile(r"([A-Za-z_]\w*|\d{1,3}|[@*#])(?:\[([@*]|\d{1,4})\])?(?:(:?)([-=+?])(.*))?", re.DOTALL | re.ASCII)
_QUOTE = re.compile(r"[\"']")
_HOSTS = re.compile(
    r"scontrol show hostnames?(?: ([^\s$`|]+))?( \| ?(?:head -n ?1|head -1|sed -n 1p))?(?: \|\| echo \S+)?"
)
_THIS_HOST = re.compile(r"(?:hostname(?: -\S+)*|uname -n)(?: \| ?(?:awk|cut|head) [^|]{1,40})?")
_NAMED_HOST = re.compile(r"srun .{0,80}?(?:-w |--nodelist[= ])([^\s$`,\[]+) (?:-\S+ )*hostname(?: -\S+)*")
_FOLDER = re.compile(
    r"(?:dirname|realpath|readlink -f)(?: --)? (?P<path>[^\s$`]+)|"
    r"cd(?: --)? (?P<to>[^\s$`]+)(?: (?:&>|>) ?/dev/null)?(?: 2>&1)? && pwd(?: -P)?"
)
_PRODUCT = re.compile(r"\( ?(\d{1,8}|[A-Za-z_]\w{0,60}) ?\* ?(\d{1,8}|[A-Za-z_]\w{0,60}) ?\)", re.ASCII)
_LONGEST, _MOST, _DEPTH = 50_000, 2_000_000, 4
"""Maximum characters of one value; maximum characters read and expanded in all; maximum nesting of expansions."""


def is_known(text: str) -> bool:
    """True if nothing is left to expand."""
    return "$" not in text and "`" not in text


def reasons(text: str, why: Mapping[str, str]) -> list[str]:
    """Say why each expansion left in a text is unknown."""
    found = []
    for use in _USE.findall(text[:_LONGEST]):
        named = _NAMED.fullmatch(_bare(use))
        if use.startswith(("$(", "`")) or named is None:
            found.append(f"`{_bare(use)[:80]}` is not worked out")
        else:
            found.append(f"{named[1] if named[1].isidentifier() else use} {why.get(named[1], 'is not set')}")
    return list(dict.fromkeys(found))


def _bare(use: str) -> str:
    """Return an expansion without its sign and brackets; those of a sum stay."""
    if use.startswith(("${", "$(")) and not use.startswith("$(("):
        return use[2:-1]
    return use if use.startswith("$(") else use.strip("$`")


class Scope:
    """Variables, arrays and arguments at one place of a script."""

    def __init__(self, variables: Mapping[str, str], arguments: Sequence[str], path: str, here: str) -> None:
        self.variables = dict(variables)
        self.arrays: dict[str, list[str]] = {}
        self.arguments: list[str] | None = list(arguments)
        """None if unknown."""
        self.path, self.here, self.folder = path, here, "."
        """Path of the script as called; name of this host; working directory."""
        self.why = {"RANDOM": "is random"}
        """Variable -> why its value is unknown."""
        self.left = _MOST
        """Number of characters that may still be read or expanded."""

    def assign(self, name: str, value: str) -> None:
        """Set a variable; the output of an unrecognised command is unknown."""
        self.arrays.pop(name, None)
        self.left -= len(value)
        if value.startswith(("$(", "`")) and _USE.fullmatch(value):
            self.forget(name, f"comes from `{_bare(value)[:80]}`")
        elif len(value) > _LONGEST or self.left < 0:
            self.forget(name, "is too long")
        else:
            self.variables[name] = value
            self.why.pop(name, None)

    def forget(self, name: str, why: str) -> None:
        """Mark a variable as unknown."""
        self.variables.pop(name, None)
        self.arrays.pop(name, None)
        self.why[name] = why

    def expand(self, text: str, depth: int = 0) -> str:
        """Expand what is known in a text."""
        if is_known(text) or depth > _DEPTH:
            return text
        return _USE.sub(lambda use: self._value_or_same(use[0], depth), text)

    def split(self, word: Word, source: str) -> list[str]:
        """Expand a word of a command into zero or more words, as a shell splits what is not quoted."""
        text = word.text
        items = self.arguments if text in ("$@", "$*", "${@}") else None
        if text.endswith(("[@]}", "[*]}")) and text.startswith("${"):
            items = self.arrays.get(text[2:-4])
        if items is not None and self.left > 0:
            self.left -= sum(map(len, items)) + len(items)
            return list(items)
        found = self.expand(text)
        return [found] if found == text or _QUOTE.search(source) else _PIECE.findall(found)

    def whole_folder(self) -> str:
        """Return the absolute working directory."""
        return os.path.normpath(Path.cwd() / self.folder)

    def _value_or_same(self, use: str, depth: int) -> str:
        if self.left <= 0:
            return use
        said = self._output(use, depth) if use.startswith(("$(", "`")) else self._value(use, depth)
        self.left -= len(said or "")
        return use if said is None else said

    def _value(self, use: str, depth: int) -> str | None:
        """Return the value of `$NAME`, `${NAME[1]}` or `${NAME:-default}`, or None if unknown."""
        found = _NAMED.fullmatch(_bare(use))
        if found is None:
            return None
        name, index, colon, sign, other = found.groups()
        held = self._lookup(name, index)
        is_open = name in self.why or (self.arguments is None and not name.isidentifier() and name != "0")
        if sign in (None, "?") or is_open:
            return held
        other = self.expand(_QUOTE.sub("", other), depth + 1)
        is_set = bool(held) if colon else held is not None
        if sign == "=" and not is_set:
            self.assign(name, other)
        return (other if is_set else "") if sign == "+" else held if is_set else other

    def _lookup(self, name: str, index: str | None = None) -> str | None:
        if name in ("0", "BASH_SOURCE"):
            return self.path
        if name in self.arrays:
            items = self.arrays[name]
            return " ".join(items) if index in ("@", "*") else next(iter(items[int(index or 0) :]), None)
        if name.isidentifier():
            return self.whole_folder() if name == "PWD" else self.variables.get(name) if index in (None, "0") else None
        if self.arguments is None or name in ("@", "*", "#"):
            given = self.arguments
            return None if given is None else str(len(given)) if name == "#" else " ".join(given)
        return next(iter(self.arguments[int(name) - 1 :]), None)

    def _output(self, use: str, depth: int) -> str | None:
        """Return the output of a well-known `$(...)`, or None; a shell would have to run the others."""
        inner = use[2:-1] if use[0] == "$" else use[1:-1]
        text = " ".join(_QUOTE.sub("", self.expand(inner, depth + 1)).split())
        if found := _PRODUCT.fullmatch(text):
            factors = [f if f.isdecimal() else self._lookup(f) or "" for f in found.groups()]
            return str(math.prod(map(int, factors))) if all(f.isdecimal() and len(f) < 8 for f in factors) else None
        if found := _HOSTS.fullmatch(text):
            names = hostfile.slurm(found[1] or self.variables.get("SLURM_JOB_NODELIST", ""))
            self.left -= 10 * len(names)
            return "\n".join(names[:1] if found[2] else names) or None
        if found := _NAMED_HOST.fullmatch(text):
            return found[1]  # its name leads to the same address
        if _THIS_HOST.fullmatch(text):
            return self.here
        if found := _FOLDER.fullmatch(text):
            path = PurePath(found["path"] or found["to"])
            return str(path.parent) if text.startswith("dirname") else os.path.normpath(Path.cwd() / self.folder / path)
        return {"nproc": str(os.cpu_count() or 1), "pwd": self.whole_folder()}.get(text.removesuffix(" --all"))
