"""Runs the wizard in a terminal: keyboard only, 80 columns, with or without colour, also through a pipe."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
from rich.console import Console
from rich.syntax import Syntax
from rich.text import Text

from dtdebug.privacy.boundary import mask_snapshot
from dtdebug.privacy.sanitize import clean
from dtdebug.wizard import keep
from dtdebug.wizard.session import Session, default, heard, known_line
from dtdebug_taxonomy.diagnosis.diagnose import Asked, Diagnosis
from dtdebug_taxonomy.explanations.model import Explanation
from dtdebug_taxonomy.knowledge.loader import Knowledge, load
from dtdebug_taxonomy.presentation.text import DIFF_OF, because, first_line, to_markdown, to_text

Ask = Callable[[str], str]
"""Shows a prompt and reads a line; raises EOFError at the end, KeyboardInterrupt on Ctrl-C."""

_SHOWN_ADVICE = 3
_INTERRUPTED = 130


def start(session: Session, report: Path | None = None) -> int:
    """Run the wizard on this process's terminal or pipe and return the exit status: 0, or 130 after Ctrl-C."""
    console = plain_console()
    talk = _Talk(session, load(), console, reader(console), report)
    return 0 if talk.run_talk() else _INTERRUPTED


def run(
    session: Session,
    knowledge: Knowledge | None = None,
    console: Console | None = None,
    ask: Ask | None = None,
    report: Path | None = None,
) -> Session:
    """Ask until no question is worth asking or the user stops, then show the advice.

    Ctrl-C and the end of the input keep all answers; the returned session is then not `stopped`.
    """
    console = console or plain_console()
    talk = _Talk(session, knowledge or load(), console, ask or reader(console), report)
    talk.run_talk()
    return talk.session


def plain_console() -> Console:
    """Return standard output, styled only on a terminal that wants it (NO_COLOR also switches bold off)."""
    plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb" or not sys.stdout.isatty()
    return Console(color_system=None, highlight=False) if plain else Console(highlight=False)


def reader(console: Console) -> Ask:
    """Return a function that reads standard input; piped lines are echoed, so that a transcript is readable."""
    if sys.stdin is not None and sys.stdin.isatty():
        return _from_terminal
    stream = getattr(sys.stdin, "buffer", None)

    def read(prompt: str) -> str:
        raw = stream.readline() if stream is not None else b""
        if not raw:
            raise EOFError
        line: str = raw.decode("utf-8", "replace").rstrip("\r\n")
        console.print(Text(prompt + clean(line)))
        return line

    return read


def _from_terminal(prompt: str) -> str:
    try:
        return input(prompt)
    except UnicodeDecodeError:
        return "\ufffd"  # no choice has this name, so the question is repeated


class _Talk:
    """Run of the wizard: shows the session and turns lines into transitions."""

    def __init__(self, session: Session, knowledge: Knowledge, console: Console, ask: Ask, report: Path | None) -> None:
        self.session = session
        self._knowledge, self._console, self._ask, self._report = knowledge, console, ask, report
        self._colour = console.color_system is not None and not console.no_color
        self._explained = False

    def run_talk(self) -> bool:
        """Talk to the end; False after Ctrl-C. An interrupted session is kept, and the way to resume it is shown."""
        try:
            self._through()
        except KeyboardInterrupt:
            self._how_to_go_on()
            return False
        except EOFError:
            self._advise()
            self._how_to_go_on()
        return True

    def _through(self) -> None:
        """Go from the first question to the report."""
        if self.session.is_stopped:
            self._go(self.session.back())
        self._show_known(self.session.diagnosis(self._knowledge))
        asked_to_tell = False
        while not self.session.is_stopped:
            if not (asked_to_tell or self.session.has_description or self.session.steps):
                self._describe()
                asked_to_tell = not self.session.has_description
            diagnosis = self.session.diagnosis(self._knowledge)
            if self.session.steps or diagnosis.known:
                self._say(f"So far: {first_line(diagnosis)}", "bold")
            question = self.session.question(diagnosis)
            self._go(self._turn(diagnosis, question) if question is not None else self.session.finish())
        self._advise()
        self._offer_report()

    def _how_to_go_on(self) -> None:
        if not (self.session.steps or self.session.has_description):
            return
        if keep(self.session):
            self._say("\nYour answers are kept. To go on: dtdebug wizard --resume")
        else:
            self._say("\nYour answers could not be saved: the state directory can't be written.")

    def _advise(self) -> None:
        """Show the answer, its reasons, and the next attempts."""
        diagnosis = msgspec.structs.replace(self.session.diagnosis(self._knowledge), question=None)
        self._say("")
        for line in to_text(diagnosis, advice=0).splitlines():
            self._say(line, "" if line.startswith(" ") else "bold")
        if diagnosis.verdict == "unknown":
            self._say("Tell more, or let dtdebug read what the program printed: dtdebug wizard FILE")
        for number, advice in enumerate(diagnosis.advice[:_SHOWN_ADVICE], 1):
            self._advice(number, advice)

    def _go(self, session: Session) -> None:
        self.session = session
        keep(session)

    def _describe(self) -> None:
        """Read lines up to an empty one as one step; a pasted error has many."""
        before, lines = self.session, list[str]()
        prompt = "What do you see? (a line or two; empty line to skip) "
        while line := clean(self._ask(prompt)).strip():
            lines.append(line)
            self._go(before.describe("\n".join(lines)))
            prompt = "(more, or an empty line) "

    def _turn(self, diagnosis: Diagnosis, question: Asked) -> Session:
        """Show a question and read until something changes the session."""
        self._show(diagnosis, question)
        while True:
            line = clean(self._ask(f"Answer [1-{len(question.values)} ? h w b l q]: ")).strip()
            try:
                session = self._act(line, diagnosis, question)
            except ValueError as error:
                self._say(str(error), "red")
                continue
            if session is not None:
                return session

    def _act(self, line: str, diagnosis: Diagnosis, question: Asked) -> Session | None:
        """Return the session after a line, or None if the line only displayed something."""
        words = line.split()
        if words and words[0].lower() == "set":
            return self._set(words[1:])
        key = line.lower()
        if key in ("?", "d"):
            return self.session.dont_know(question.key, self._knowledge)
        if key == "q":
            return self.session.finish()
        if key == "b":
            if self.session.steps:
                return self.session.back()
            raise ValueError("There is nothing to take back.")
        if key in ("h", "w", "l"):
            {"h": self._how, "w": self._why, "l": self._list}[key](diagnosis, question)
            return None
        value = _match_choice(key, question) if key else default(diagnosis)
        if value is None:
            raise ValueError(_no_choice(line, question))
        return self.session.answer(question.key, value, self._knowledge)

    def _set(self, words: list[str]) -> Session:
        if len(words) != 2:
            raise ValueError("Type: set KEY VALUE (or set KEY ? for don't know); l lists the keys.")
        key, value = words
        if value == "?":
            return self.session.dont_know(key, self._knowledge)
        return self.session.answer(key, value, self._knowledge)

    def _show(self, diagnosis: Diagnosis, question: Asked) -> None:
        number = len(self.session.answers) + len(self.session.unknown) + 1
        self._say(f"\nQuestion {number}: {question.ask}", "bold")
        widest = max(len(value) for value, _ in question.values)
        for position, (value, means) in enumerate(question.values, 1):
            self._print_wrapped(f"  {position:>2}  {value:<{widest}}  ", Text("" if means == value else means))
        if hint := heard(diagnosis):
            takes = f" (Enter takes {hint.values[0]})" if default(diagnosis) else ""
            self._say(f"  {known_line(hint)}{takes}")
        if not self._explained:
            self._explained = True
            self._say("  Number or name; ? don't know, h how, w why, b back, l list, q stop.", "dim")

    def _how(self, diagnosis: Diagnosis, question: Asked) -> None:
        self._say(f"  {question.how}")
        if question.command:
            self._verbatim(question.command)

    def _why(self, diagnosis: Diagnosis, question: Asked) -> None:
        saves = f" The answer should save about {question.saves:.0f} min." if question.saves >= 1 else ""
        self._say(f"  {question.why}{saves}")

    def _list(self, diagnosis: Diagnosis, question: Asked) -> None:
        self._show_known(diagnosis)
        self._say("  To change one: set KEY VALUE")

    def _show_known(self, diagnosis: Diagnosis) -> None:
        lines = [known_line(k) for k in diagnosis.known] + [f"don't know: {key}" for key in self.session.unknown]
        if lines:
            self._say("Known:", "bold")
        for line in lines:
            self._say(f"  {line}")

    def _advice(self, number: int, advice: Explanation) -> None:
        self._say(f"\n{number}. {advice.title} ({advice.band})", "bold")
        self._say(f"   {advice.why}")
        for reason in because(advice):
            self._say(f"   because: {reason}")
        self._say(f"   Fix: {advice.fix}")
        if advice.diff:
            self._say(f"   {DIFF_OF[advice.diff_of]}")
            self._verbatim(advice.diff.rstrip("\n"), lexer="diff")

    def _offer_report(self) -> None:
        """Write the report to the caller's or the user's file."""
        if self._report is not None:
            self._write(self._report, "w")
            return
        try:
            while (name := clean(self._ask("\nMarkdown report to file (empty: none): ")).strip()) not in ("", "q"):
                if Path(name).suffix not in (".md", ".txt"):  # a superfluous answer, or a piped log, is not a file name
                    self._say("Name a file such as report.md, or press Enter.", "red")
                elif self._write(Path(name), "x"):
                    return
        except (EOFError, KeyboardInterrupt):
            self._say("")

    def _write(self, path: Path, mode: str) -> bool:
        text = to_markdown(self.session.diagnosis(self._knowledge), mask_snapshot(self.session.snapshot))
        try:
            with path.expanduser().open(mode, encoding="utf-8", errors="replace") as file:
                file.write(text)
        except FileExistsError:
            self._say(f"{path} already exists; name another.", "red")
            return False
        except (OSError, RuntimeError) as error:  # RuntimeError: no home for ~
            self._say(f"{path} can't be written: {getattr(error, 'strerror', None) or error}", "red")
            return False
        self._say(f"Wrote {path}")
        return True

    def _say(self, text: str, style: str = "") -> None:
        """Print lines of text as they are, wrapped below their own indentation."""
        for line in clean(text).split("\n"):
            body = line.lstrip(" ")
            self._print_wrapped(" " * (len(line) - len(body)), Text(body, style=style if self._colour else ""))

    def _print_wrapped(self, before: str, text: Text) -> None:
        """Print a text with a hanging prefix."""
        for piece in text.wrap(self._console, max(self._console.width - len(before), 20)) or [text]:
            line = Text(before) + piece
            line.rstrip()
            self._console.print(line, soft_wrap=True)
            before = " " * len(before)

    def _verbatim(self, text: str, lexer: str = "") -> None:
        """Print text to copy: never wrapped, coloured if colour is on."""
        if lexer and self._colour:
            shown = Syntax("", lexer, theme="ansi_dark", background_color="default").highlight(text)
        else:
            shown = Text(text)
        self._console.print(Text("\n").join(_indent_lines(shown)), soft_wrap=True)


def _indent_lines(text: Text) -> Iterator[Text]:
    for line in text.split("\n"):
        yield Text("    ") + line


def _match_choice(line: str, question: Asked) -> str | None:
    """Return the value that a number, a name or the unambiguous beginning of a name selects."""
    values = [value for value, _ in question.values]
    if line in values:
        return line
    if line.isdecimal():
        number = int(line[:4])
        return values[number - 1] if 1 <= number <= len(values) else None
    begins = [value for value in values if value.startswith(line)]
    return begins[0] if len(begins) == 1 else None


def _no_choice(line: str, question: Asked) -> str:
    said = f"{line[:17]}... is" if len(line) > 20 else f"{line} is" if line else "An empty line is"
    return f"{said} no choice: 1-{len(question.values)}, a name, ? h w b l q, or set KEY VALUE."
