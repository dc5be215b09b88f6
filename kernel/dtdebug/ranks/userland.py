"""Tells the user's own code from libraries, by the name of a file."""

from __future__ import annotations

from functools import lru_cache

_LIBRARY = ("/site-packages/", "/dist-packages/", "/lib/python3", "/torch/distributed/", "/torch/_", "/dtdebug/ranks/")
_NOT_A_FILE = ("<frozen", "<string>", "<built-in", "??")


@lru_cache(maxsize=65_536)
def is_library(file: str) -> bool:
    """The file belongs to Python, to an installed package or to no file at all."""
    path = file.replace("\\", "/")
    return not path or path.startswith(_NOT_A_FILE) or any(part in path for part in _LIBRARY)
