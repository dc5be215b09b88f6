"""Finds the files that a started command would write: redirections, `rm`, `mv`, `cp`, ..."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Any

_SHELLS = ("sh", "bash", "dash", "zsh", "ksh")
_BEFORE = ("sudo", "env", "nice", "nohup", "exec", "command", "time", "builtin")
_ALL = ("rm", "rmdir", "mv", "unlink", "shred", "truncate", "tee")
"""Commands that change each of their arguments; those below change only the last."""
_LAST = ("cp", "install", "ln", "rsync")
_SET = re.compile(r"[A-Za-z_]\w*=")
_LONGEST = 100_000


def written_paths(event: str, args: tuple[Any, ...]) -> Iterator[str]:
    """Yield the paths that a command would change, from the audit event of its start."""
    if event == "os.system":
        yield from _of_text(os.fsdecode(args[0]), os.getcwd())  # noqa: PTH109 - pathlib takes milliseconds
    elif event == "subprocess.Popen":
        words = [args[1]] if isinstance(args[1], (str, bytes)) else list(args[1])
        yield from _of_words([os.fsdecode(w) for w in words], os.fsdecode(args[2] or os.getcwd()))  # noqa: PTH109
    elif event in ("os.exec", "os.posix_spawn"):
        yield from _of_words([os.fsdecode(w) for w in args[1]], os.getcwd())  # noqa: PTH109


def _of_text(text: str, home: str) -> Iterator[str]:
    """Yield the paths in a shell command line; none if it can't be parsed."""
    try:
        lexer = shlex.shlex(text[:_LONGEST].replace("\n", " ; "), posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        tokens = list(lexer)
    except ValueError:
        return
    words: list[str] = []
    into = False
    for token in [*tokens, ";"]:
        if into:
            into = False
            yield _path(token, home)
        elif token and set(token) <= set("<>&|") and ">" in token:
            into = not token.endswith("&")  # `2>&1` is not a file
            words = words[:-1] if words and words[-1].isdecimal() else words
        elif token and set(token) <= set(";&|()"):
            yield from _of_words(words, home)
            if words[:1] == ["cd"] and len(words) == 2:
                home = _path(words[1], home)
            words = []
        else:
            words.append(token)


def _of_words(words: Sequence[str], home: str) -> Iterator[str]:
    words = list(words)
    while words and (os.path.basename(words[0]) in _BEFORE or _SET.match(words[0])):  # noqa: PTH119
        words.pop(0)
    if not words:
        return
    name, rest = os.path.basename(words[0]), words[1:]  # noqa: PTH119
    if name in _SHELLS:
        script = next((rest[i + 1] for i, w in enumerate(rest[:-1]) if w.startswith("-") and w.endswith("c")), "")
        yield from _of_text(script, home)
        return
    files = [_path(word, home) for word in rest if not word.startswith("-")]
    if name in _ALL:
        yield from files
    elif name in _LAST and len(files) > 1:
        into = files[-1]
        folder = os.path.isdir(into)  # noqa: PTH112
        yield from (os.path.join(into, os.path.basename(f)) if folder else into for f in files[:-1])  # noqa: PTH118, PTH119
    elif name == "dd":
        yield from (_path(word[3:], home) for word in rest if word.startswith("of="))
    elif name in ("sed", "perl") and any(w.startswith(("-i", "--in-place")) for w in rest):
        yield from (f for f in files if os.path.isfile(f))  # noqa: PTH113 - the others are its script


def _path(word: str, home: str) -> str:
    return os.path.join(home, os.path.expanduser(os.path.expandvars(word)))  # noqa: PTH111, PTH118
