"""Shell scripts: the commands they start and the variables they set; also `.env` files."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise

from dtdebug_taxonomy.source.shell.commands import Assignment, Command, Directive, Heredoc, Word
from dtdebug_taxonomy.source.shell.lexer import Lexer
from dtdebug_taxonomy.source.shell.words import Words
from dtdebug_taxonomy.source.source import Source, UnreadPart, Variable
from dtdebug_taxonomy.source.text import Span, Text

_DIRECTIVE = re.compile(
    r"^[ \t]*#(?P<system>SBATCH|PBS|BSUB|\$|COBALT)[ \t]+(?P<option>(?P<name>--[\w-]+|-\w)"
    r"(?:(?:[ \t]*=[ \t]*|[ \t]+)?(?P<value>\"[^\"\r\n]*\"|[^\s#]+))?)",
    re.MULTILINE,
)
_USE = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?:\[[@*]\])?\})")
_LASTS = frozenset({"export", "declare", "typeset", "local", "readonly"})
_CONTAINERS = frozenset({"docker", "podman", "singularity", "apptainer"})
_PASSED = {"-x": frozenset({"mpirun", "mpiexec", "orterun"}), "-e": _CONTAINERS, "--env": _CONTAINERS}
"""Options that pass `NAME=value` on to child processes, and the programs that have them."""
_LONGEST = 400_000
"""Maximum number of characters of a script."""


class Script(Source):
    """Shell script, or the pieces of one within another file."""

    kind = "shell"

    def __init__(
        self, text: str, *, path: str = "", pieces: tuple[Span, ...] | None = None, more: tuple[Command, ...] = ()
    ) -> None:
        super().__init__(text, path=path)
        self._more = more
        """Commands without shell text: lists of words in a program."""
        self.pieces = (Span(0, len(self.text)),) if pieces is None else pieces
        """Spans of the shell text."""

    @cached_property
    def _read_words(self) -> Words:
        """All pieces, read one after the other."""
        whole = Words(self.text)
        for piece in self.pieces:
            if piece.end - piece.start <= _LONGEST:
                whole.take(Lexer(self.text, piece).run())
            else:
                whole.unread.append(UnreadPart(piece, f"it has more than {_LONGEST:,} characters"))
        return whole

    @property
    def unread(self) -> tuple[UnreadPart, ...]:
        """Parts of the shell text that could not be read."""
        return tuple(sorted(set(self._read_words.unread)))

    @cached_property
    def commands(self) -> tuple[Command, ...]:
        """All commands, including those in `$(...)` and in the quoted text of `bash -c`, by place."""
        found = [*self._read_words.commands, *self._more]
        for command in self._read_words.commands:
            names = [w.text.rsplit("/", 1)[-1] for w in command.words]
            for at, name in enumerate(names[:-2]):
                if name in {"bash", "sh", "zsh"} and names[at + 1].startswith("-") and names[at + 1].endswith("c"):
                    word = command.words[at + 2]
                    if word.is_quoted:
                        found += Lexer(self.text, word.inner, command.depth + 1).run().commands
        return tuple(sorted(found, key=lambda c: (c.span, c.depth)))

    @property
    def heredocs(self) -> list[Heredoc]:
        """Here-documents in the script."""
        return self._read_words.heredocs

    @cached_property
    def directives(self) -> tuple[Directive, ...]:
        """Options for a batch system in comments, by place."""
        found = []
        for match in _DIRECTIVE.finditer(self.text) if "#" in self.text else ():
            if not any(p.start <= match.start() < p.end for p in self.pieces):
                continue
            value, value_span = match["value"], Span(*match.span("value"))
            if value and value[0] == '"':
                value, value_span = value[1:-1], Span(value_span.start + 1, value_span.end - 1)
            system = {"$": "SGE"}.get(match["system"], match["system"])
            found.append(
                Directive(system, match["name"], Span(*match.span("option")), value, value_span if value else None)
            )
        return tuple(found)

    def directive(self, *names: str) -> Directive | None:
        """Return the last directive with one of these names, or None."""
        return next((d for d in reversed(self.directives) if d.name in names), None)

    @cached_property
    def assignments(self) -> dict[str, list[tuple[Assignment, Command]]]:
        """Name -> its assignments, in order."""
        found: dict[str, list[tuple[Assignment, Command]]] = defaultdict(list)
        for command in self.commands:
            for assignment in command.assignments:
                found[assignment.name].append((assignment, command))
        return found

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """Every variable that is set or expanded."""
        found = [_variable(a) for c in self.commands for a in c.assignments]
        for command in self.commands:
            found += _passed_on(self.text, command)
        for name, span in self._read_words.reads:
            found.append(Variable(name, span, is_set=False))
        return tuple(sorted(found, key=lambda v: v.span))

    def constant(self, name: str) -> Word | None:
        """Return the value of a variable wherever it is used; None if it depends on the place."""
        rows = self._lasting_assignments(name)
        if len(rows) != 1:
            return None
        (assignment, command), *_ = rows
        certain = not (command.branch or command.joined in {"||", "&&"} or command.depth or assignment.adds)
        return assignment.value if certain and not assignment.items else None

    def resolve(self, text: str) -> str:
        """Return a text with the variables expanded that the script sets to constant values."""

        def put(found: re.Match[str]) -> str:
            value = self.constant(found[1] or found[2])
            return value.text if value is not None and value.is_fixed else found[0]

        return _USE.sub(put, text) if "$" in text else text

    def expand_words(self, command: Command) -> list[Word]:
        """Return the words of a command, with variables or arrays of the script expanded."""
        return [word for w in command.words for word in self._expand(w, 3)]

    def _expand(self, word: Word, depth: int) -> Iterator[Word]:
        """Expand a word that is only a variable by its single assignment, and those that append to it."""
        use = _USE.fullmatch(word.text) if depth else None
        rows = self._lasting_assignments(use[1] or use[2]) if use else []
        if not rows or any(a.adds != (i > 0) for i, (a, _) in enumerate(rows)):
            yield word
            return
        for assignment, command in rows:
            if command.branch or command.joined in {"||", "&&"}:
                yield word  # a conditional value is represented by the unknown word
                continue
            for part in self._parts(assignment, word):
                yield from self._expand(part, depth - 1)

    def _lasting_assignments(self, name: str) -> list[tuple[Assignment, Command]]:
        """Return the assignments of a variable that hold beyond one command."""
        return [(a, c) for a, c in self.assignments.get(name, ()) if not c.words or c.words[0].text in _LASTS]

    def _parts(self, assignment: Assignment, word: Word) -> list[Word]:
        if assignment.items or assignment.value.text in {"()", ""}:
            return list(assignment.items)
        if word.is_quoted or not assignment.value.is_quoted:
            return [assignment.value]
        commands = Lexer(self.text, assignment.value.inner).run().commands
        return list(commands[0].words) if len(commands) == 1 else [word]


class Holder(Source):
    """File that contains shell text."""

    @cached_property
    def script(self) -> Script:
        """The shell text."""
        return Script(self.text, path=self.path, pieces=())


def script_of(source: Source) -> Script | None:
    """Return the shell text of a file: all of it, or the text it contains; None if it contains none."""
    if isinstance(source, Script):
        return source
    return source.script if isinstance(source, Holder) else None


def _variable(assignment: Assignment) -> Variable:
    value = assignment.value
    known = value.is_fixed and not assignment.items and not assignment.adds
    return Variable(assignment.name, assignment.span, value.text if known else None, value.inner if known else None)


def _passed_on(text: Text, command: Command) -> Iterator[Variable]:
    """Yield variables set by an option: `setenv A 1`, `docker run -e A=1`, `mpirun -x A=1`, `srun --export=ALL,A=1`."""
    words = command.words
    if command.name == "setenv" and len(words) > 1:
        value = words[2] if len(words) > 2 else None
        known = value is not None and value.is_fixed
        yield Variable(words[1].text, words[1].inner, value.text if value and known else None, value and value.inner)
    for word, following in pairwise(words):
        if command.name in _PASSED.get(word.text, ()):
            yield from _pairs(text, following.inner)
    for word in words:
        name, equals, _ = word.text.partition("=")
        passes = name == "--export" and command.name in {"srun", "sbatch"}
        if equals and (passes or (name == "--env" and command.name in _CONTAINERS)):
            yield from _pairs(text, Span(word.span.start + len(name) + 1, word.span.end))


_PAIR = re.compile(r"(?P<name>[A-Za-z_]\w*)(?:=(?P<value>[^,\s\"']*))?")


def _pairs(text: str, span: Span) -> Iterator[Variable]:
    for pair in _PAIR.finditer(text, *span):
        if pair["name"] in {"ALL", "NONE", "NIL"}:
            continue
        value = pair["value"]
        known = value is not None and "$" not in value
        yield Variable(
            pair["name"],
            Span(*pair.span("name")),
            value if known else None,
            Span(*pair.span("value")) if known else None,
            is_set=value is not None,
        )
