"""Shell commands for the checks: words with their places, in any kind of file."""

from __future__ import annotations

from typing import NamedTuple

from dtdebug_taxonomy.source.text import Span


class Word(NamedTuple):
    """Word of a command, or value of an assignment."""

    span: Span
    """Span with its quotes."""
    text: str
    """Text without quotes; shell expansions stay as written: `$HOME`, `$(nproc)`."""
    inner: Span
    """Span without the quotes, if the whole word is one quoted piece."""

    @property
    def is_fixed(self) -> bool:
        """True if it is known before it runs."""
        return "$" not in self.text and "`" not in self.text

    @property
    def is_quoted(self) -> bool:
        """True if the shell does not split it."""
        return self.inner != self.span


class Assignment(NamedTuple):
    """`NAME=value`, alone or before a command."""

    name: str
    span: Span
    """Span of the name."""
    value: Word
    items: tuple[Word, ...] = ()
    """Items of an array: `NAME=(a b)`."""
    adds: bool = False
    """True for `NAME+=value`."""


class Arm(NamedTuple):
    """Part of a compound command around a command: `then` of an `if`, a pattern of a `case`."""

    block: int
    """Distinct number of each `if`, `case`, loop and bracket of a text."""
    word: str
    """First word: `if`, `for`, `while`, `until`, `select`, `case`, `{`, `(`."""
    part: str = ""
    """`then`, `elif`, `else`, `do`; for a `case` its pattern."""
    number: int = 0
    """Number of the part, by position."""


class Command(NamedTuple):
    """Simple command: the text between two separators."""

    span: Span
    assignments: tuple[Assignment, ...]
    """Assignments in front of it; alone if it has no words."""
    words: tuple[Word, ...]
    joined: str = ""
    """Operator that joins it to the previous command: `|`, `||`, `&&`."""
    depth: int = 0
    """Depth of nested `$(...)`."""
    arms: tuple[Arm, ...] = ()
    """Parts of `if`, `case`, loops and functions around it, outermost first."""
    is_list: bool = False
    """True for a list of words in a program, which is not shell text."""

    @property
    def branch(self) -> int:
        """Number of `if`, `case`, loops and functions that are open around it."""
        return len(self.arms)

    @property
    def name(self) -> str:
        """Name of the program, without its folder."""
        return self.words[0].text.rsplit("/", 1)[-1] if self.words else ""


class Directive(NamedTuple):
    """Option for a batch system in a comment: `#SBATCH --ntasks-per-node=8`."""

    system: str
    name: str
    """Name as written: `--ntasks-per-node`, `-N`."""
    span: Span
    """Span of name and value."""
    value: str | None
    value_span: Span | None


class Heredoc(NamedTuple):
    """Text within a script: `cat <<EOF > file`."""

    span: Span
    fixed: bool
    """True if the shell expands nothing in it (`<<'EOF'`)."""
