"""Variables of a script at one moment, and their expansion.

Unknown values stay as written, with their `$`, so that they can be detected and named later.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from dtdebug.doctor.launch.shell import arithmetic, external_tools
from dtdebug_taxonomy.source.shell.commands import Word
from dtdebug_taxonomy.source.shell.script import Script

_BARE = re.compile(r"\$([A-Za-z_]\w*|[\d@*#])")
_BRACES = re.compile(r"([#!]?)([A-Za-z_]\w*|\d{1,3}|[@*#])(?:\[([^\]]{0,60})\])?(.*)", re.DOTALL)
_QUOTES = re.compile(r"[\"']")
_SIGN, _STOP = re.compile(r"[$`]"), re.compile(r"[$`]|\s")
_BRACKETS = {"(": re.compile(r"[()]"), "{": re.compile(r"[{}]")}
_DEPTH, _LONGEST, _LONGEST_USE = 8, 200_000, 1_500
"""Maximum nesting of expansions; maximum characters of a value, and of `$(...)`."""
_MOST, _USES = 40, 4_000
"""Maximum commands in `$(...)`; twice the expansions in one text."""


def is_known(text: str) -> bool:
    """True if nothing is left to expand."""
    return "$" not in text and "`" not in text


class Values:
    """Variables, arrays and arguments."""

    def __init__(self, variables: Mapping[str, str], arguments: Sequence[str], path: str, here: str) -> None:
        self.variables = dict(variables)
        self.arrays: dict[str, list[str]] = {}
        self.arguments = list(arguments)
        self.path = path
        """Path of the script, as called."""
        self.here = here
        """Name of this host."""
        self.folder = "."
        self.empty = False
        """Expand unset variables to "", as a shell does; used in conditions."""

    def get(self, name: str) -> str | None:
        """Return the value of a variable or argument, or None if unset."""
        if name.isdecimal():
            at = int(name)
            return self.path if at == 0 else self.arguments[at - 1] if at <= len(self.arguments) else None
        if name in ("@", "*"):
            return " ".join(self.arguments)
        if name == "#":
            return str(len(self.arguments))
        if name in self.arrays:
            return next(iter(self.arrays[name]), "")
        if name == "BASH_SOURCE":
            return self.path
        return self.whole_folder() if name == "PWD" else self.variables.get(name)

    def expand(self, text: str, depth: int = 0) -> str:
        """Expand everything in a text that is known."""
        if is_known(text) or depth > _DEPTH or len(text) > _LONGEST:
            return text
        out, at, size = list[str](), 0, 0
        while (sign := _SIGN.search(text, at)) is not None:
            end = self._end(text, sign.start())
            out += text[at : sign.start()], self._put(text[sign.start() : end], depth)
            size += len(out[-1])
            at = end
            if size > _LONGEST or len(out) > _USES:
                return text
        return "".join((*out, text[at:]))

    def go_to(self, folder: str) -> None:
        """Change the working directory."""
        alone = folder.startswith(("/", "~", "$", "`")) or self.folder == "."
        self.folder = folder if alone else f"{self.folder}/{folder}"

    def whole_folder(self) -> str:
        """Return the absolute working directory."""
        return os.path.normpath(Path.cwd() / self.folder)

    def words(self, word: Word, source: str) -> list[str]:
        """Expand one word of a command into zero or more words; unquoted expansions are split."""
        text = word.text
        if text in ("$@", "$*", "${@}", "${*}"):
            return list(self.arguments)
        items = self._items(text)
        if items is not None:
            return items
        found = self.expand(text)
        return [found] if found == text or _QUOTES.search(source) else self._split_words(found)

    def _split_words(self, text: str) -> list[str]:
        """Split a text into words, but not within unknown expansions."""
        found, start, at = list[str](), 0, 0
        while (stop := _STOP.search(text, at)) is not None:
            if stop[0] in "$`":
                at = self._end(text, stop.start())
                continue
            found.append(text[start : stop.start()])
            start = at = stop.end()
        return [piece for piece in (*found, text[start:]) if piece]

    def _items(self, text: str) -> list[str] | None:
        """Return the elements of `${NAME[@]}`, `${@:2}`, `$NAME[@]`, or None for other text."""
        found = re.fullmatch(r"\$\{([A-Za-z_]\w*)\[[@*]\]\}|\$\{[@*]:(\d{1,2})\}", text)
        if not found:
            return None
        if found[2]:
            return self.arguments[max(0, int(found[2]) - 1) :]
        if found[1] in self.arrays:
            return list(self.arrays[found[1]])
        only = self.variables.get(found[1])
        return None if only is None else [only]

    def _end(self, text: str, start: int) -> int:
        """Return the end of the expansion that begins with a `$` or backtick at `start`."""
        last = start + _LONGEST_USE
        if text[start] == "`":
            return text.find("`", start + 1, last) + 1 or start + 1
        opened = text[start + 1 : start + 2]
        if opened in ("(", "{"):
            closing, level = {"(": ")", "{": "}"}[opened], 0
            for bracket in _BRACKETS[opened].finditer(text, start + 1, last):
                level += -1 if bracket[0] == closing else 1
                if not level:
                    return bracket.end()
            return start + 1
        bare = _BARE.match(text, start)
        return bare.end() if bare else start + 1

    def _put(self, text: str, depth: int) -> str:
        if text.startswith("$((") and text.endswith("))"):
            inner = self.expand(text[3:-2], depth + 1)
            found = arithmetic.sum_value(inner, self.get)
            return text if found is None else str(found)
        if text.startswith(("$(", "`")):
            said = self._command_output(text[2:-1] if text[0] == "$" else text[1:-1], depth)
            return text if said is None else said
        if text.startswith("${"):
            said = self._braces(text[2:-1], depth)
        else:
            said = self.get(text[1:]) if len(text) > 1 else None
        return said if said is not None else "" if self.empty and len(text) > 1 else text

    def _braces(self, text: str, depth: int) -> str | None:
        """Expand `${NAME...}`."""
        found = _BRACES.fullmatch(text)
        if not found:
            return None
        mark, name, index, rest = found.groups()
        held = self._element(name, index)
        if mark == "#":
            many = len(self.arrays[name]) if index in ("@", "*") and name in self.arrays else len(held or "")
            return str(many) if held is not None or name in self.arrays else None
        if mark == "!":
            return self.get(held) if held and is_known(held) else None
        if not rest:
            return held
        return self._apply_operator(name, held, rest, depth)

    def _element(self, name: str, index: str | None) -> str | None:
        if index is None or name not in self.arrays:
            return self.get(name) if index in (None, "0", "@", "*") else None
        items = self.arrays[name]
        if index in ("@", "*"):
            return " ".join(items)
        at = self.expand(index)
        return items[int(at)] if at.isdecimal() and int(at) < len(items) else None

    def _apply_operator(self, name: str, held: str | None, rest: str, depth: int) -> str | None:
        sign = rest[1] if rest[0] == ":" and len(rest) > 1 else rest[0]
        has = bool(held) if rest[0] == ":" else held is not None
        if sign in "-=+?":
            other = _QUOTES.sub("", self.expand(rest[2 if rest[0] == ":" else 1 :], depth + 1))
            if sign == "+":
                return other if has else ""
            if sign == "=" and not has:
                self.variables[name] = other
            return held if has else other if sign != "?" else None
        if held is None or not is_known(held):
            return held
        return _cut(held, rest, lambda text: self.expand(text, depth + 1))

    def _command_output(self, text: str, depth: int) -> str | None:
        """Return the output of the commands in `$(...)`, or None if one of them would have to be run."""
        if depth > _DEPTH:
            return None
        printed, given, kept = "", "", self.folder
        try:
            for command in Script(text).commands[:_MOST]:
                if command.depth or not command.words:
                    continue
                source = text[command.words[0].span.start : command.span.end]
                words = [w for word in command.words for w in self.words(word, source)]
                if command.joined == "||" and printed:
                    continue
                if words[:1] == ["cd"]:
                    self.go_to(next((w for w in words[1:] if w != "--"), "~"))
                    continue
                said = external_tools.output(
                    words, given if command.joined == "|" else "", self.here, self.whole_folder()
                )
                if said is None:
                    return None
                printed, given = (said if command.joined == "|" else f"{printed}{said}"), said
        finally:
            self.folder = kept
        return printed.rstrip("\n")


def _cut(held: str, rest: str, expand: Callable[[str], str]) -> str | None:
    """Apply `${A%.*}`, `${A##*/}`, `${A//x/y}`, `${A:0:3}` or `${A,,}`."""
    if rest in (",,", "^^"):
        return held.lower() if rest == ",," else held.upper()
    if rest[0] == ":":
        start, length = (
            [arithmetic.sum_value(expand(p), lambda name: None) for p in rest[1:].split(":", 1)] + [len(held)]
        )[:2]
        known_ = start is not None and length is not None and start >= 0 <= length
        return held[start : start + length] if known_ else None  # type: ignore[operator]
    if rest[0] in "#%":
        longest = rest[:2] in ("##", "%%")
        pattern = expand(rest[1 + longest :])
        cuts = range(len(held) + 1) if (rest[0] == "#") != longest else range(len(held), -1, -1)
        for at in cuts if len(held) < 1000 else ():
            gone, left = (held[:at], held[at:]) if rest[0] == "#" else (held[at:], held[:at])
            if fnmatchcase(gone, pattern):
                return left
        return held
    if rest[0] == "/":
        old, _, new = rest.lstrip("/").partition("/")
        old, new = expand(old).strip("\"'").replace("\\", ""), expand(new).strip("\"'")
        if not old or any(c in old for c in "*?["):
            return None
        return held.replace(old, new) if rest.startswith("//") else held.replace(old, new, 1)
    return None
