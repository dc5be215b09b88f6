"""Variables of this process that arm its children, set and taken back."""

from __future__ import annotations

import os
from collections.abc import Mapping, MutableMapping

from dtdebug.agent.membership import MARK

_LISTS = ("PYTHONPATH",)
"""Variables that hold several paths: others may have added theirs meanwhile."""


class Variables:
    """Changes to an environment that can be undone without touching what others have changed since."""

    def __init__(self, environment: MutableMapping[str, str] = os.environ) -> None:
        self._environment = environment
        self._before: dict[str, str | None] = {}
        self._ours: dict[str, str] = {}

    def put(self, values: Mapping[str, str], before: Mapping[str, str]) -> None:
        """Sets variables; `before` is the environment that `undo` goes back to."""
        for name, value in values.items():
            self._before.setdefault(name, before.get(name))
            self._ours[name] = value
            self._environment[name] = value

    def undo(self) -> None:
        """Takes back what is still as it was set; from lists of paths, our paths alone."""
        for name, ours in self._ours.items():
            before, now = self._before[name], self._environment.get(name)
            if now == ours:
                self._set(name, before)
            elif now is not None and name in _LISTS:
                kept = (before or "").split(os.pathsep)
                added = [path for path in ours.split(os.pathsep) if path not in kept]
                rest = [path for path in now.split(os.pathsep) if path not in added]
                self._set(name, os.pathsep.join(rest) or before)
        self._before, self._ours = {}, {}
        if self._environment.get(MARK, "").startswith(f"{os.getpid()}:"):  # set when this process became a rank
            del self._environment[MARK]

    def _set(self, name: str, value: str | None) -> None:
        if value is None:
            self._environment.pop(name, None)
        else:
            self._environment[name] = value
