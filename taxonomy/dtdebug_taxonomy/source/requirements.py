"""Installed packages: requirements files, Dockerfiles, and `pip install` in any shell text."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from dtdebug_taxonomy.source.config.document import Config, list_command
from dtdebug_taxonomy.source.config.json_reader import JsonReader
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.environment import inner
from dtdebug_taxonomy.source.shell.commands import Command, Word
from dtdebug_taxonomy.source.shell.lexer import Lexer
from dtdebug_taxonomy.source.shell.script import Holder, Script, script_of
from dtdebug_taxonomy.source.source import Source, UnreadPart, Variable
from dtdebug_taxonomy.source.text import Span, Text

_LINE = re.compile(r"^[ \t]*(?P<what>[^\s#][^\r\n]*?)[ \t]*(?:[ \t]#[^\r\n]*)?\r?$", re.MULTILINE)
_NAME = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*)[ \t]*(?:\[[^\]]*\])?[ \t]*(?P<rest>[^;]*)")
_INSTRUCTION = re.compile(r"^[ \t]*(?P<name>[A-Za-z]+)[ \t]+", re.MULTILINE)
_COMMENT = re.compile(r"^[ \t]*#[^\r\n]*", re.MULTILINE)
_HEREDOC = re.compile(r"<<-?[ \t]*['\"]?(\w+)")
_SHELL = frozenset({"RUN", "CMD", "ENTRYPOINT"})
_PIP_VALUE = re.compile(
    r"-[rcift]|--(requirement|constraint|index-url|extra-index-url|find-links|target|prefix|root|platform|python-version|"
    r"config-settings|global-option|install-option|no-binary|only-binary|build-option|timeout|retries|trusted-host|proxy|"
    r"cache-dir|python)"
)
"""Options of pip that are followed by a value."""


class Requirement(NamedTuple):
    """Package to be installed."""

    name: str
    """Normalised: lower case, `-` between words."""
    span: Span
    """Span of the requirement as written."""
    rest: str
    """Version, or address after `@`."""
    command: Command | None = None
    """`pip install`, if it is in a script."""
    options: tuple[str, ...] = ()


class Requirements(Source):
    """A `requirements.txt`."""

    kind = "requirements"

    @cached_property
    def requirements(self) -> tuple[Requirement, ...]:
        """The packages with a name, without files, addresses and options."""
        rows = (_requirement(line["what"], line.start("what")) for line in _LINE.finditer(self.text))
        return tuple(r for r in rows if r is not None)


class Instruction(NamedTuple):
    """Line of a Dockerfile with its continuation lines."""

    name: str
    """Upper case."""
    span: Span
    """Span of the text after the name."""


class Dockerfile(Holder):
    """A Dockerfile or Containerfile."""

    kind = "dockerfile"

    @cached_property
    def instructions(self) -> tuple[Instruction, ...]:
        """All instructions in order."""
        found: list[Instruction] = []
        at = 0
        while (head := _INSTRUCTION.search(self.text, at)) is not None:
            at = max(self._end(head.end()), head.end())
            found.append(Instruction(head["name"].upper(), Span(head.end(), at)))
        return tuple(found)

    def _end(self, start: int) -> int:
        """Return the end of an instruction: lines continue after a backslash, over comments, and in here-documents."""
        text, line = self.text, self.text.place(start).line
        while line < len(text.starts):
            written = text.line(line)
            if (heredoc := _HEREDOC.search(written)) and "<<<" not in written:
                stop = re.compile(rf"^\t*{re.escape(heredoc[1])}[ \t]*\r?$", re.MULTILINE).search(text, start)
                return stop.end() if stop else len(text)
            if not (written.rstrip().endswith("\\") or (_COMMENT.fullmatch(written) and line > 1)):
                break
            line += 1
        return text.end_of_line(line)

    @cached_property
    def script(self) -> Script:
        """Commands of RUN, CMD and ENTRYPOINT, as shell text or lists of words."""
        text, pieces, lists = list(self.text), [], []
        for instruction in self.instructions:
            start, end = instruction.span
            if instruction.name not in _SHELL:
                continue
            if self.text[start:end].lstrip().startswith("["):
                node = JsonReader(self.text, instruction.span).read()
                lists += [command] if node and (command := list_command(node)) else []
                continue
            pieces.append(instruction.span)
            for comment in _COMMENT.finditer(self.text, start, end):  # docker removes them, a shell would end there
                text[comment.start() : comment.end()] = " " * (comment.end() - comment.start() - 1) + "\\"
        return Script(Text("".join(text)), path=self.path, pieces=tuple(pieces), more=tuple(lists))

    @property
    def unread(self) -> tuple[UnreadPart, ...]:
        """Parts of its commands that could not be read."""
        return self.script.unread

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """Variables that ENV, ARG and the commands set."""
        found = list(self.script.variables)
        for instruction in self.instructions:
            if instruction.name in {"ENV", "ARG"}:
                found += self._set(instruction)
        return tuple(sorted(found, key=lambda v: v.span))

    def _set(self, instruction: Instruction) -> Iterator[Variable]:
        commands = Lexer(self.text, instruction.span).run().commands
        assignments = [a for c in commands for a in c.assignments]
        for a in assignments:
            yield Variable(a.name, a.span, a.value.text if a.value.is_fixed else None, a.value.inner)
        if not assignments and commands and len(commands[0].words) > 1:  # ENV NAME value
            name, value = commands[0].words[:2]
            yield Variable(name.text, name.span, value.text if value.is_fixed else None, value.inner)


def installed_packages(source: Source) -> Iterator[Requirement]:
    """Yield the packages that a requirements file, or the `pip install` commands of any shell text, install."""
    if isinstance(source, Requirements):
        yield from source.requirements
        return
    for text, start in _listed_packages(source):
        made = _requirement(text, start)
        if made is not None:
            yield made
    if (script := script_of(source)) is not None:
        for command in script.commands:
            options = tuple(w.text for w in command.words if w.text.startswith("-"))
            for word in _pip_words(command):
                made = _requirement(word.text, word.inner.start)
                if made is not None:
                    yield made._replace(span=word.inner, command=command, options=options)


def _listed_packages(source: Source) -> Iterator[tuple[str, int]]:
    """Yield the lists of `- pip:` in an environment for conda, and of `install_requires` in a setup.py."""
    if isinstance(source, Config):
        for path, entry in source.entries:
            if path.rpartition(".")[2] == "pip":
                for item in entry.node.items:
                    if isinstance(item.value, str):
                        yield item.value, item.inner.start
    elif isinstance(source, Code) and "install_requires" in source.text:
        for keyword in source.nodes(ast.keyword):
            if keyword.arg == "install_requires" and isinstance(keyword.value, ast.List):
                for element in keyword.value.elts:
                    if isinstance(element, ast.Constant) and isinstance(element.value, str):
                        yield element.value, inner(source, element).start


def _pip_words(command: Command) -> Iterator[Word]:
    texts = [w.text for w in command.words] if command.name not in {"echo", "printf"} else []
    for at, text in enumerate(texts[:-1]):
        if texts[at + 1] == "install" and re.fullmatch(r"pip[\d.]*", text.rsplit("/", 1)[-1]):
            break
    else:
        return
    skip = False
    for word in command.words[at + 2 :]:
        if skip:
            skip = False
        elif word.text.startswith("-"):
            skip = bool(_PIP_VALUE.fullmatch(word.text))
        else:
            yield word


def _requirement(text: str, start: int) -> Requirement | None:
    """Parse `name[extra]>=1 ; marker`; None for options, addresses and paths."""
    found = _NAME.match(text)
    if found is None or re.match(r"[\w.+-]*(?:/|\\|://)", text):
        return None
    rest = found["rest"].strip()
    if rest and not re.match(r"[=<>!~@(]", rest):
        return None
    name = re.sub(r"[-_.]+", "-", found["name"]).lower()
    return Requirement(name, Span(start, start + len(text.rstrip())), rest)
