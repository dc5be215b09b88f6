"""The launch command within a shell script, with what the script and this host's variables put into it.

The script is read, never run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath

from dtdebug.errors import UsageError
from dtdebug.logs import careful
from dtdebug_taxonomy.source import launch as launches
from dtdebug_taxonomy.source.shell import Script

_SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh", "sbatch"))
_SIZE = 400_000
_DEPTH = 6
_USE = re.compile(r"\$\{(?P<name>\w+)(?::?-(?P<default>[^{}$]{0,200}))?\}|\$(?P<bare>[A-Za-z_]\w*|[1-9])")
_PRODUCT = re.compile(r"\$\(\(\s*(\d{1,6})\s*\*\s*(\d{1,6})\s*\)\)")


def within(command: Sequence[str], variables: Mapping[str, str]) -> tuple[list[str], dict[str, str], int] | None:
    """(command that starts the ranks, variables that the script exports, how many such commands it has), or None.

    Raises:
        UsageError: the script can't be read.

    """
    place = _place(command)
    if place is None:
        return None
    path = Path(command[place])
    try:
        script = Script(careful.text(path, _SIZE), path=str(path))
    except OSError as error:
        raise UsageError(f"{path}: can't be read: {error.strerror}") from None
    given = {str(n): word for n, word in enumerate(command[place + 1 :][:9], 1)}
    found = list(launches.launches(script))
    if not found and (held := _held(script)):
        script = Script(f"{script.text}\n{held}\n", path=str(path))
        found = list(launches.launches(script))
    if not found:
        return None
    words = [_resolved(script, word.text, given | dict(variables)) for word in script.expanded(found[0].command)]
    exported = {
        name: _resolved(script, rows[-1][0].value.text, given | dict(variables))
        for name, rows in script.assignments.items()
        if script.constant(name) is not None
    }
    return [w for w in words if w], {n: v for n, v in exported.items() if "$" not in v}, len(found)


def _held(script: Script) -> str:
    """The command that a variable holds and `eval $VARIABLE` starts, on one line."""
    for command in script.commands:
        use = _USE.fullmatch(command.words[1].text) if command.name == "eval" and len(command.words) > 1 else None
        constant = script.constant(use["name"] or use["bare"]) if use is not None else None
        if constant is not None and any(word in constant.text for word in launches.WORDS):
            return " ".join(constant.text.replace("\\\n", " ").split())
    return ""


def _place(command: Sequence[str]) -> int | None:
    """Where among the words the script's path is."""
    for index, word in enumerate(command[:8]):
        if PurePath(word).name in _SHELLS:
            rest = index + 1
            while rest < len(command) and command[rest].startswith("-"):
                if command[rest].endswith("c"):  # a text, not a file
                    return None
                rest += 1
            return rest if rest < len(command) else None
        if index == 0 and word.endswith((".sh", ".slurm", ".sbatch")):
            return index
    return None


def _resolved(script: Script, text: str, variables: Mapping[str, str], above: frozenset[str] = frozenset()) -> str:
    """A text with all put in that is known; what is not stays as it is written."""

    def put(use: re.Match[str]) -> str:
        name = use["name"] or use["bare"]
        constant = script.constant(name) if name not in above and len(above) < _DEPTH else None
        if constant is not None:
            return _resolved(script, constant.text, variables, above | {name})
        if name in variables:
            return variables[name]
        return use["default"] if use["default"] is not None else use[0]

    done = _USE.sub(put, text) if "$" in text else text
    return _PRODUCT.sub(lambda m: str(int(m[1]) * int(m[2])), done) if "$((" in done else done
