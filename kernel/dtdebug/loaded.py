"""What `%load_ext dtdebug` keeps in this process, for whoever goes on from it: front ends, the magic, the hooks."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what they are made of is loaded when a cell has failed
    from dtdebug.told import FailedCell
    from dtdebug.wizard.session import Session
    from dtdebug.wizard.widgets import Wizard
    from dtdebug_taxonomy.snapshot import Snapshot


class Loaded(ABC):
    """The last failure of one shell, and what was answered about it."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.quiet = False
        """`%dtdebug off`: nothing appears under failed cells."""
        self.debug = False
        """Show the whole traceback of a failure of ours."""
        self.snapshot: Snapshot | None = None
        """Snapshot of the last failed cell, or None."""
        self.examined: dict[str, tuple[str, str]] = {}
        """What `%dtdebug doctor` measured."""
        self.session: Session | None = None
        """The wizard's session about it, once something was answered."""
        self.given: FailedCell | None = None
        """What a front end has told about it, all of it, when it last asked."""
        self.wizard: Wizard | None = None
        """The wizard's widgets that are on the screen, or None."""

    @abstractmethod
    def remove(self) -> None:
        """Undoes what loading has set up."""

    def publish(self, data: dict[str, Any]) -> None:
        """Shows a MIME bundle as an output of the running cell."""
        self.shell.display_pub.publish(data)

    def report_own(self, error: BaseException) -> None:
        """A failure of ours is one line; with `%dtdebug debug` its traceback."""
        try:
            if self.debug:
                import traceback

                traceback.print_exception(error)
            else:
                print(f"dtdebug: internal error ({type(error).__name__}); `%dtdebug debug` shows more", file=sys.stderr)
        except Exception:  # noqa: S110 - there is nobody left to tell
            pass


extension: Loaded | None = None
"""Set by `%load_ext dtdebug`, None where that has not been run."""
