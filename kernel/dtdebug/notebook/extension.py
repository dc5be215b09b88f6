"""Notebook extension: one `post_run_cell` hook that notices failed cells.

Nothing is patched and no other tool's handler is replaced. A passing cell costs a few
dictionary look-ups; everything else happens only after a cell has failed.
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dtdebug.notebook import extension_state, failed_cell
from dtdebug.notebook.live_kernel import LiveExtension
from dtdebug.notebook.load_ahead import LoadAhead
from dtdebug.notebook.output_tail import Tail
from dtdebug.process.cell_text import compiled_text

if TYPE_CHECKING:
    from dtdebug.notebook.arm import ArmedKernel


class Extension(LiveExtension):
    """Everything that `%load_ext dtdebug` sets up in one shell."""

    live: ArmedKernel | None

    def __init__(self, shell: Any) -> None:
        super().__init__(shell)
        self.tail = Tail()
        self._ahead = LoadAhead()
        self._thread = threading.get_ident()
        """Thread that runs cells; failures in subshells are not failures of the cell that hangs meanwhile."""
        self._children = os.times()[2:4]
        """CPU time of ended child processes at the start of the cell."""
        self._shown: tuple[Any, dict[str, Any]] | None = None
        """Publisher and bundle of the answer to this cell; `%%capture` swaps publishers while its cell runs."""
        self._seen = id(sys.__dict__.get("last_value"))
        """Identity of the last exception examined; a reference would keep its tensors alive."""
        self._told: set[str] = set()
        """Failed cells that editors were notified of."""

    def install(self) -> None:
        """Register the hooks and the magic."""
        from dtdebug.notebook.arm import ArmedKernel
        from dtdebug.notebook.magic import register

        self.live = ArmedKernel(self.shell, self.tail.so_far)
        self._thread = self.live.thread
        try:
            self.live.begin()
        except Exception as error:  # a notebook without armed ranks is better than one without an extension
            self.report_own(error)
        self.shell.events.register("pre_run_cell", self.before)
        self.shell.events.register("post_run_cell", self.after)
        self.tail.attach()
        register(self)

    def remove(self) -> None:
        """Undo `install`."""
        for event, hook in (("pre_run_cell", self.before), ("post_run_cell", self.after)):
            if hook in self.shell.events.callbacks[event]:
                self.shell.events.unregister(event, hook)
        self.tail.detach()
        self._ahead.cell_begins()
        if self.live is not None:
            self.live.end()
        self.shell.magics_manager.magics["line"].pop("dtdebug", None)

    def before(self, info: Any = None) -> None:
        """Handle the start of a cell."""
        if threading.get_ident() != self._thread:
            return
        if self.live is not None:
            self.live.known_children |= {child.pid for child in self.live.failed_children()}
            self.live.cell_begins(info)
            self.live.store.cell_begins()
        self._ahead.cell_begins()
        self.tail.clear()
        self._children = os.times()[2:4]
        self._shown = None

    def after(self, result: Any = None) -> None:
        """Handle the end of a cell: diagnose it if it failed; never raise."""
        if threading.get_ident() != self._thread:
            if self.live is not None:
                self.live.beside_ends()
            return
        try:
            self._ahead.cell_ends()
            if self.live is not None:
                self.live.cell_ends()
            exception = None
            if result is not None:
                exception = result.error_in_exec if result.error_in_exec is not None else result.error_before_exec
            last = sys.__dict__.get("last_value")  # use the dictionary: a miss of getattr on sys is slow
            if exception is None:
                if last is None or id(last) == self._seen:
                    if self._shown is not None:
                        self._show_again(*self._shown)
                    elif self._has_sign() or self._command_failed(result) or self._rank_failed():
                        self._look(None, result)
                    elif self._told:
                        self._clear_failure(result)
                    return
                exception = last  # shown, but swallowed by %run, %%capture or repr
            self._seen = id(last)
            self._look(exception, result)
            if self.quiet:
                return
            from dtdebug.notebook import magic_ranks

            if issubclass(type(exception), KeyboardInterrupt):
                magic_ranks.show_interrupt(self)
            magic_ranks.left_behind(self)
        except BaseException as error:
            self.report_own(error)

    def _has_sign(self) -> bool:
        """True if the cell printed a sign of failure; late output is awaited only if ranks may have printed it."""
        if os.times()[2:4] != self._children:
            self.tail.settle()
        elif "nbdistributed" in sys.modules:  # prints the errors of its ranks and raises nothing
            self.tail.flush()
        return self.tail.alarmed

    def _show_again(self, publisher: Any, data: dict[str, Any]) -> None:
        """Show an answer that `%%capture` has swallowed; it does not swallow the error message either."""
        if publisher is not self.shell.display_pub:
            self.publish(data)

    def _had_children(self) -> bool:
        """True if a child process has ended in this cell or still runs; also if only a costly look would tell."""
        if os.times()[2:4] != self._children or "nbdistributed" in sys.modules:
            return True
        try:
            return any(path.read_bytes() for path in Path("/proc/self/task").glob("*/children"))
        except OSError:
            return True

    def _rank_failed(self) -> bool:
        """True if a rank of a cell that passed has ended badly; looked up only if a child process has ended."""
        if self.live is None or os.times()[2:4] == self._children:
            return False
        return self.live.has_failed_ranks or (self.live.has_ranks and bool(self.live.failed_children()))

    def _command_failed(self, result: Any) -> bool:
        """True if a `!command` of this cell ended with a non-zero status; IPython treats such a cell as successful."""
        if not self.shell.user_ns.get("_exit_code"):
            return False
        cell = getattr(getattr(result, "info", None), "raw_cell", None) or ""
        return "!" in cell or "%sx" in cell or "%system" in cell

    def _look(self, exception: BaseException | None, result: Any) -> None:
        """Diagnose a failed cell, for `%dtdebug` to continue from, and publish a result worth showing unasked."""
        cell = compiled_text(getattr(getattr(result, "info", None), "raw_cell", None) or "")
        if "%dtdebug" in cell or type(exception).__name__ == "UsageError":
            return
        told, last = failed_cell.ours(cell, self.live)
        if told:
            if last is not None:
                self.snapshot, self.session, self.wizard = last.snapshot, None, None
            return
        job = _job(result)
        found = failed_cell.diagnose_failed_cell(
            exception,
            output=self.tail.text(awaited=exception is None or self._had_children()),
            cell=cell,
            job=job,
            live=self.live,
            shell=self.shell,
        )
        if found is None:
            if exception is not None and not issubclass(type(exception), KeyboardInterrupt):
                self.snapshot = self.session = self.wizard = None  # `%dtdebug` looks at this exception
            return
        self.snapshot, diagnosis, handed_on = found
        if handed_on:
            self._told.add(job)
        self.session = self.wizard = None
        if diagnosis.recognised and not self.quiet:
            from dtdebug.presentation.diagnosis_card import bundle

            self._shown = (self.shell.display_pub, bundle(diagnosis, self.snapshot))
            self.publish(self._shown[1])

    def _clear_failure(self, result: Any) -> None:
        """Handle the success of a cell: editors drop its earlier failure."""
        job = _job(result)
        if job in self._told:
            from dtdebug.storage import editor_marks

            editor_marks.drop_failure(job)
            self._told.discard(job)

    def greet(self) -> None:
        """Say that failures are watched, and answer for what has failed already; never raise."""
        try:
            print("dtdebug watches this notebook for failed distributed runs; `%dtdebug off` turns it off.")
            if sys.__dict__.get("last_value") is not None:
                from dtdebug.notebook.magic import show_last

                show_last(self)
            elif self.live is not None and self.live.name:
                from dtdebug.notebook.kernel_death import death_lines

                for line in death_lines(self.live.name):
                    print(line)
        except BaseException as error:
            self.report_own(error)


def _job(result: Any) -> str:
    """Return a key of a cell over several runs: the front end's id, or a hash of its text."""
    info = getattr(result, "info", None)
    return f"cell {getattr(info, 'cell_id', None) or hash(getattr(info, 'raw_cell', None))}"


def load(shell: Any) -> None:
    """Install the extension once for a shell; loading again changes nothing."""
    if extension_state.extension is not None:
        if extension_state.extension.shell is shell:
            return
        extension_state.extension.remove()
    extension = Extension(shell)
    extension.install()
    extension_state.extension = extension
    extension.greet()


def unload(shell: Any) -> None:
    """Remove the extension from a shell."""
    if extension_state.extension is not None:
        extension_state.extension.remove()
        extension_state.extension = None
