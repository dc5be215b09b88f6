"""Options of `dtdebug run`, and the output of its results."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from dtdebug.live.job.relay import Relay
from dtdebug.storage.run_folder import RunFolder
from dtdebug_taxonomy.presentation.case_json import Case, contract


class Options(NamedTuple):
    """Options of the user."""

    hang_after: float = 120.0
    stop_on_hang: bool = False
    stop_unexplained: bool = False
    """True to also end a job that hangs for an unknown reason, or may still make progress."""
    folder: Path | None = None
    quiet: bool = False
    format: str = "text"
    output: Path | None = None
    full: bool = False
    """True to print all that is known."""
    watch: bool = False
    """True to check training invariants during the run."""
    parity: tuple[int, ...] = ()
    """Steps that are compared with those of one process."""
    nonfinite: bool = False
    """True to find where the first value that is not finite arises."""
    contract: tuple[str, bool, dict[str, int]] | None = None
    """File of the calls that ranks are compared with; whether its outermost loops may have any number of rounds."""
    environment: Mapping[str, str] = {}
    """Extra variables for the job, which control what its ranks do with their collectives (see `course`)."""
    after: Callable[[], None] = lambda: None
    """Called when the job has ended."""
    foreseen: Callable[[Case], str] = lambda _: ""
    """Returns a note on a check that would have predicted the failure before the run."""

    @property
    def looks_at_training(self) -> bool:
        """True if the user asked for an examination of the training itself."""
        return self.watch or self.nonfinite or bool(self.parity) or self.contract is not None


class Speaker:
    """Writes our messages to standard error, each on its own line, or to the file that the user named."""

    def __init__(
        self, relay: Relay | None = None, options: Options | None = None, run: RunFolder | None = None
    ) -> None:
        self._relay, self._options, self._run = relay, options or Options(), run

    def say(self, text: str, prefix: str = "dtdebug: ") -> None:
        """Print one or several lines."""
        begin = "\n" if self._relay is not None and self._relay.in_line() else ""
        with suppress(OSError, AttributeError):  # it may be closed
            sys.stderr.write(begin + prefix + text.rstrip("\n") + "\n")
            sys.stderr.flush()

    def report(self, found: Case, what: str, *, brief: bool = False) -> str:
        """Report a case, and return what was printed; nothing if the user asked for quiet."""
        if self._options.output:
            self.write(found, what)
        elif not self._options.quiet:
            text = self._text(found, what, brief=brief)
            self.say(text, prefix="")
            return text
        return ""

    def _text(self, found: Case, what: str, *, brief: bool = False) -> str:
        from dtdebug.live.job.report import first_line, to_text
        from dtdebug.live.job.saved_case import RUN_STEP, snapshot_of, without_step
        from dtdebug.presentation.terminal import answer_text, next_step

        found = without_step(found, RUN_STEP)
        taken = {"--watch": self._options.watch, "--parity": self._options.parity, "--nan": self._options.nonfinite}
        for option in (name for name, chosen in taken.items() if chosen):
            found = without_step(found, option)
        if found.diagnosis is None or self._options.full:
            return to_text(found, what, self._run, brief=brief)
        return answer_text(
            found.diagnosis,
            snapshot_of(found, self._run),
            event=first_line(found, what),
            next_step=next_step(found.next),
            stream=sys.stderr,
            collected=str(self._run.path) if self._run is not None else "",
        )

    def write(self, found: Case, what: str) -> None:
        """Write a case to the file that the user named."""
        from dtdebug.storage import state_dir

        if self._options.output is None:
            return
        as_json = self._options.format == "json"
        text = msgspec.json.encode(contract(found)) if as_json else f"{self._text(found, what)}\n".encode()
        try:
            state_dir.write(self._options.output, text)
        except OSError as error:
            self.say(f"{self._options.output}: can't be written: {error.strerror}")

    def remark(self, text: str) -> None:
        """Print a line that only readers of text reports want."""
        if not self._options.quiet and not self._options.output:
            self.say(text)

    def show(self, text: str) -> None:
        """Print lines that belong below a text report; nothing if there are none."""
        if text and not self._options.quiet and not self._options.output:
            self.say(text, prefix="")
