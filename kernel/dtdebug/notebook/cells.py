"""Tells the files that a kernel invents for its cells by the numbers that the user sees."""

from __future__ import annotations

import os
import re
from typing import Any, TypeVar

import msgspec

from dtdebug_taxonomy.ranks import Frame, RankState, Verdict
from dtdebug_taxonomy.view import Timeline

T = TypeVar("T")
INVENTED = re.compile(
    r"(?P<file>[^\s\"'(),:;]{0,200}ipykernel_\d{1,10}[/\\]\d{1,12}\.py|<ipython-input-\d{1,9}-[0-9a-f]{4,40}>)"
    r"(?::(?P<line>\d{1,9})\b)?"
)
"""Names that ipykernel and IPython give to the code of a cell."""


_KERNEL = re.compile(r"ipykernel_\d{1,10}")
for _type in (RankState, Verdict, Timeline):
    msgspec.json.Decoder(_type)  # learnt now: two threads that are the first to read a type end the process


class Cells:
    """The names of a shell's cells."""

    def __init__(self, shell: Any) -> None:
        self._label = getattr(getattr(shell, "compile", None), "format_code_name", None)

    def name(self, file: str) -> str:
        """`cell In[12]` for the file of a cell, of this kernel or with the same text of another; '' for any other."""
        try:
            label = self._label(file) if self._label else None
            if label is None and self._label and "ipykernel_" in file:
                label = self._label(_KERNEL.sub(f"ipykernel_{os.getpid()}", file))
            return f"cell {label[1]}" if label else ""
        except Exception:  # a shell of another make
            return ""

    def translated(self, value: T) -> T:
        """A record with each file of a cell, alone or within a text, replaced by the cell's name."""
        return msgspec.convert(self._each(msgspec.to_builtins(value)), type(value))

    def text(self, text: str) -> str:
        """A text with `cell In[12], line 3` for the files of cells."""
        return INVENTED.sub(self._named, text) if "ipykernel_" in text or "<ipython-input-" in text else text

    def _named(self, found: re.Match[str]) -> str:
        name = self.name(found["file"])
        if not name:
            return found[0]
        return f"{name}, line {found['line']}" if found["line"] else name

    def _each(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.name(value) or self.text(value)
        if isinstance(value, dict):
            return {k: self._each(v) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._each(v) for v in value]
        return value


def frame_words(frame: Frame) -> str:
    """A frame in words: `cell In[12], line 3, in <module>: dist.barrier()`."""
    where = f"{frame.file}, line {frame.line}" if frame.file.startswith("cell ") else f"{frame.file}:{frame.line}"
    inside = "" if frame.function == "<module>" else f", in {frame.function}"
    return f"{where}{inside}{': ' + frame.code if frame.code else ''}"
