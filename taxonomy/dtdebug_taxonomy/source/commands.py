"""What a shell command is to the checks: words with their places, whichever kind of file it stands in."""

from __future__ import annotations

from typing import NamedTuple

from dtdebug_taxonomy.source.text import Span


class Word(NamedTuple):
    """A word of a command, or the value of an assignment."""

    span: Span
    """With its quotes."""
    text: str
    """Without quotes; what a shell would put in stays as it is written: `$HOME`, `$(nproc)`."""
    inner: Span
    """Without the quotes, if all of the word is one quoted piece."""

    @property
    def is_fixed(self) -> bool:
        """Whether it is known before it runs."""
        return "$" not in self.text and "`" not in self.text

    @property
    def is_quoted(self) -> bool:
        """Whether the shell leaves it whole."""
        return self.inner != self.span


class Assignment(NamedTuple):
    """`NAME=value`, alone or before a command."""

    name: str
    span: Span
    """Of the name."""
    value: Word
    items: tuple[Word, ...] = ()
    """Of an array: `NAME=(a b)`."""
    adds: bool = False
    """`NAME+=value`."""


class Arm(NamedTuple):
    """A part of something with parts that stands around a command: `then` of an `if`, a pattern of a `case`."""

    block: int
    """Another number for each `if`, `case`, loop and bracket of a text."""
    word: str
    """What it begins with: `if`, `for`, `while`, `until`, `select`, `case`, `{`, `(`."""
    part: str = ""
    """`then`, `elif`, `else`, `do`; of a `case` its pattern."""
    number: int = 0
    """Of the part, by place."""


class Command(NamedTuple):
    """A simple command: what stands between two separators."""

    span: Span
    assignments: tuple[Assignment, ...]
    """In front of it; alone if it has no words."""
    words: tuple[Word, ...]
    joined: str = ""
    """What joins it to the command before it: `|`, `||`, `&&`."""
    depth: int = 0
    """How deep in `$(...)` it stands."""
    arms: tuple[Arm, ...] = ()
    """The parts of `if`, `case`, loops and functions around it, the outermost first."""
    is_list: bool = False
    """A list of words in a program, no shell text."""

    @property
    def branch(self) -> int:
        """How many `if`, `case`, loops and functions are open around it."""
        return len(self.arms)

    @property
    def name(self) -> str:
        """The program, without its folder."""
        return self.words[0].text.rsplit("/", 1)[-1] if self.words else ""


class Directive(NamedTuple):
    """An option for a batch system in a comment: `#SBATCH --ntasks-per-node=8`."""

    system: str
    name: str
    """As it is written: `--ntasks-per-node`, `-N`."""
    span: Span
    """Of name and value."""
    value: str | None
    value_span: Span | None


class Heredoc(NamedTuple):
    """A text within a script: `cat <<EOF > file`."""

    span: Span
    fixed: bool
    """The shell puts nothing in (`<<'EOF'`)."""
