"""The launch command within a shell script, with what the script and this host's variables put into it.

The script is read, never run.
"""

from __future__ import annotations

import operator
import re
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath

from dtdebug.doctor import hostfile
from dtdebug.errors import UsageError
from dtdebug.logs import careful
from dtdebug_taxonomy.source import launch as launches
from dtdebug_taxonomy.source.shell import Script

_SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh", "sbatch"))
_SIZE = 400_000
_DEPTH = 6
_USE = re.compile(r"\$\{(?P<name>\w+(?:\[0\])?)(?::?[-=](?P<default>[^{}$]{0,200}))?\}|\$(?P<bare>[A-Za-z_]\w*|[1-9])")
_SUM = re.compile(r"\$\(\(([\w \t*/+-]{1,120})\)\)")
_SIGNS = {"*": operator.mul, "+": operator.add, "-": operator.sub, "/": operator.floordiv}
_NAME, _TERMS = re.compile(r"\b[A-Za-z_]\w*"), re.compile(r"\d{1,6}(?: ?[*/] ?\d{1,6}){0,4}| ?\d{1,6} ?[+-] ?\d{1,6}")
_FIRST = re.compile(
    r"(?:\$\(|`) {0,4}scontrol show hostnames? {1,4}\"?([^\s\"|)`$]{1,4000})\"? {0,4}\| {0,4}"
    r"(?:sort(?: -\w)? {0,4}\| {0,4})?(?:head {1,4}-(?:n {0,4})?1|sed -n 1p) {0,4}[)`]"
)
"""The first host of the job, as Slurm tells it."""
_HERE = "$(hostname)"
_HOSTS = re.compile(r"(?m)^[ \t]*(\w{1,60})=\([ \t]*\$\([ \t]*scontrol show hostnames?\b")
_ADDRESS = re.compile(
    r"\$\( ?srun [^()|]{0,200}(?:-w|--nodelist=?) ?\"?([\w.-]{1,100})\"? hostname (?:--ip-address|-[iI])[^()]{0,60}\)"
)
"""A host's address, as it says itself: its name leads there as well."""
_UNLESS_SET = re.compile(r"(?m)^[ \t]*:[ \t]+\"?\$\{(\w{1,60}):?=([^{}$\"]{0,200})\}\"?")
_SELF = r"\"?(?:\$0|\$\{BASH_SOURCE(?:\[0\])?\}|\$BASH_SOURCE)\"?"
_REAL = rf"(?:\$\((?:realpath|readlink -f) {_SELF}\)|{_SELF})"
_FOLDER = re.compile(rf"\$\( ?dirname (?:-- )?\"?{_REAL}\"? ?\)")
"""The folder of the script itself."""
_THERE = re.compile(
    r"\$\( ?cd (?:-- )?\"?([^\"$()&;>|]{1,300}?)\"? ?(?:&?>{1,2} ?/dev/null ?)?(?:2>&1 ?)?(?:&&|;) ?pwd(?: -P)? ?\)"
)
_HOSTNAME = re.compile(r"\$\(hostname(?: -s| -f)?\)|`hostname`")


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
        script = Script(careful.read_text(path, _SIZE), path=str(path))
    except OSError as error:
        raise UsageError(f"{path}: can't be read: {error.strerror}") from None
    given = {str(n): word for n, word in enumerate(command[place + 1 :][:9], 1)}
    found = list(launches.launches(script))
    if not found and (held := _held(script)):
        script = Script(f"{script.text}\n{held}\n", path=str(path))
        found = list(launches.launches(script))
    if not found:
        return None
    arguments = list(given.values())[sum(command.name == "shift" for command in script.commands) :]
    known = given | dict(_UNLESS_SET.findall(script.text)) | _slurm(script, variables) | dict(variables)
    words = [
        part
        for word in script.expanded(found[0].command)
        for part in (arguments if word.text in ("$@", "$*") else (_resolved(script, word.text, known),))
    ]
    exported = {
        name: _resolved(script, rows[-1][0].value.text, known)
        for name, rows in script.assignments.items()
        if script.constant(name) is not None
    }
    return [w for w in words if w], {n: v for n, v in exported.items() if "$" not in v}, len(found)


def _slurm(script: Script, variables: Mapping[str, str]) -> dict[str, str]:
    """The hosts of a job of Slurm under its old name, and the first of them in the arrays that hold them all."""
    said = variables.get("SLURM_JOB_NODELIST", "")
    first = next(iter(hostfile.slurm(said)), "")
    if not first:
        return {_HERE: socket.gethostname()}
    names = set(_HOSTS.findall(script.text))
    names |= {m[1] for m in re.finditer(r"(?m)^[ \t]*(\w{1,60})=\(\$\{?(\w{1,60})\b", script.text) if m[2] in names}
    here = first if "srun" in script.text else socket.gethostname()  # a batch script runs on the first host
    return {"SLURM_NODELIST": said, _HERE: here} | {f"{name}[0]": first for name in names}


def _held(script: Script) -> str:
    """The command that a variable holds and `eval $VARIABLE` starts, or that `bash -c` is given, on one line."""
    for command in script.commands:
        texts = [w.text for w in command.words]
        for shell, option, text in zip(texts, texts[1:], texts[2:], strict=False):
            if PurePath(shell).name in _SHELLS and re.fullmatch(r"-\w{0,4}c", option) and _starts(text):
                return " ".join(text.replace("\\\n", " ").split())
        use = _USE.fullmatch(command.words[1].text) if command.name == "eval" and len(command.words) > 1 else None
        constant = script.constant(use["name"] or use["bare"]) if use is not None else None
        if constant is not None and _starts(constant.text):
            return " ".join(constant.text.replace("\\\n", " ").split())
    return ""


def _starts(text: str) -> bool:
    return any(word in text for word in launches.WORDS)


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

    def held(name: str) -> str | None:
        constant = script.constant(name) if name not in above and len(above) < _DEPTH else None
        if constant is not None:
            return _resolved(script, constant.text, variables, above | {name})
        return variables.get(name)

    def put(use: re.Match[str]) -> str:
        value = held(use["name"] or use["bare"])
        if value is not None:
            return value
        return use["default"].strip("\"'") if use["default"] is not None else use[0]

    if "$" not in text and "`" not in text:
        return text
    done = _FOLDER.sub(lambda _: str(Path(script.path).parent), _USE.sub(put, text))
    done = _HOSTNAME.sub(variables.get(_HERE, ""), _THERE.sub(r"\1", done))
    done = _ADDRESS.sub(r"\1", done)
    done = _FIRST.sub(lambda m: next(iter(hostfile.slurm(m[1])), m[0]), done)
    return _SUM.sub(lambda m: _sum(_NAME.sub(lambda n: held(n[0]) or n[0], m[1])) or m[0], done)


def _sum(text: str) -> str:
    """What a shell makes of `2 * 8`; empty where it holds more than that, or divides by zero."""
    text = " ".join(text.split())
    if not _TERMS.fullmatch(text):
        return ""
    first, *rest = re.findall(r"\d+|[*/+-]", text)
    value = int(first)
    for sign, number in zip(rest[::2], map(int, rest[1::2]), strict=True):
        if sign == "/" and not number:
            return ""
        value = _SIGNS[sign](value, number)
    return str(value)
