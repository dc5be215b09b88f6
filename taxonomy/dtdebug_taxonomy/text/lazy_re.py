"""Regular expressions that are compiled when they are first used.

A short command imports 490 patterns and uses a third of them; compiling all of them takes 0.1 s of processor time. This
is for modules that every command imports and that have many patterns; elsewhere, use `re.compile`.
"""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast


class _Lazy:
    """Stands for a compiled pattern: its methods and attributes are those of the pattern."""

    def __init__(self, pattern: Any, flags: int) -> None:
        self._wanted = (pattern, flags)

    def __getattr__(self, name: str) -> Any:
        """Compile the pattern; later accesses find its methods in this object."""
        if name.startswith("_"):
            raise AttributeError(name)
        compiled = re.compile(*self._wanted)
        self.__dict__.update({name: getattr(compiled, name) for name in dir(compiled) if not name.startswith("_")})
        return getattr(compiled, name)


def lazy_re(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return what behaves like `re.compile(pattern, flags)`; an error in the pattern is raised on first use."""
    return cast("re.Pattern[AnyStr]", _Lazy(pattern, flags))
