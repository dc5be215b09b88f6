"""State of `%load_ext dtdebug` in this process, shared by front ends, the magic and the hooks."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # their modules are imported after a cell has failed
    from dtdebug.notebook.front_end_answers import FailedCell
    from dtdebug.wizard.session import Session
    from dtdebug.wizard.widgets import Wizard
    from dtdebug_taxonomy.model.snapshot import Snapshot


class ShellState(ABC):
    """Last failure of one shell, and the answers given about it."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.quiet = False
        """True after `%dtdebug off`: nothing appears under failed cells."""
        self.debug = False
        """True to show the whole traceback of internal errors."""
        self.snapshot: Snapshot | None = None
        """Snapshot of the last failed cell, or None."""
        self.examined: dict[str, tuple[str, str]] = {}
        """Measurements of `%dtdebug doctor`."""
        self.session: Session | None = None
        """Wizard's session about it, after the first answer."""
        self.given: FailedCell | None = None
        """Last complete request of a front end about it."""
        self.wizard: Wizard | None = None
        """Wizard's widgets on the screen, or None."""

    @abstractmethod
    def remove(self) -> None:
        """Undo what loading has set up."""

    def publish(self, data: dict[str, Any]) -> None:
        """Show a MIME bundle as an output of the running cell."""
        self.shell.display_pub.publish(data)

    def report_own(self, error: BaseException) -> None:
        """Print an internal error in one line; with `%dtdebug debug` print its traceback."""
        try:
            if isinstance(error, KeyboardInterrupt):  # meant for the cell, whose ranks had just ended
                print("dtdebug: interrupted; `%dtdebug` diagnoses the last failed cell", file=sys.stderr)
            elif self.debug:
                import traceback

                traceback.print_exception(error)
            else:
                print(f"dtdebug: internal error ({type(error).__name__}); `%dtdebug debug` shows more", file=sys.stderr)
        except Exception:  # noqa: S110 - nothing is left to report it to
            pass


extension: ShellState | None = None
"""Extension set by `%load_ext dtdebug`, or None."""
