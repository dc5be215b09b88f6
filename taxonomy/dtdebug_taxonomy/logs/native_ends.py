"""Recognises the reports with which runtimes of other languages end their process, from C to Fortran."""

from __future__ import annotations

from typing import NamedTuple

from dtdebug_taxonomy.model.ranks import Frame
from dtdebug_taxonomy.text.lazy_re import lazy_re

_C = lazy_re(
    r"(?:\S{1,300}: )?(?P<file>[^\s:]{1,300}):(?P<line>\d{1,7}): (?P<function>.{1,300}?): "
    r"Assertion [`'\u2018](?P<says>.{1,500})['\u2019] failed\."
    r"|Assertion failed: (?P<says2>.{1,400}?)(?:, function (?P<function2>[^\s,]{1,200}), "
    r"file (?P<file2>[^\s,]{1,300}), line (?P<line2>\d{1,7})\."
    r"| \((?P<file3>[^\s:()]{1,300}): (?P<function3>[^\s:()]{1,200}): (?P<line3>\d{1,7})\))"
)
"""`assert` of glibc, of Apple's and of musl's C library. Sources:
https://sourceware.org/git/?p=glibc.git;a=blob;f=assert/assert.c
https://git.musl-libc.org/cgit/musl/tree/src/exit/assert.c"""
_RUST = lazy_re(
    r"thread '[^'\n]{1,100}'(?: \(\d{1,9}\))? panicked at (?:'(?P<says>.{1,400})', )?"
    r"(?P<file>[^\s:]{1,300}):(?P<line>\d{1,7}):\d{1,6}(?P<more>:)?$"
)
"""Source: https://github.com/rust-lang/rust/blob/master/library/std/src/panicking.rs (default_hook)"""
_GO = lazy_re(r"(?P<kind>panic|fatal error): (?P<says>.{1,500})")
_GOROUTINE = lazy_re(r"goroutine \d{1,9} (?:gp=\S{1,20} m=\S{1,20}(?: mp=\S{1,20})? )?\[[^\]\n]{1,100}\]:")
"""Source: https://github.com/golang/go/blob/master/src/runtime/panic.go"""
_JVM = lazy_re(
    r"Exception in thread \"[^\"\n]{1,200}\" (?P<type>(?:[a-z_]\w{0,60}\.){1,12}[A-Z][\w$]{0,100})"
    r"(?:: (?P<says>.{1,500}))?$"
)
_FORTRAN = lazy_re(r"forrtl: severe \(\d{1,4}\): (?P<says>.{1,500})")
_NEAR = 12
"""Maximum number of lines between the message of Go and its first stack."""


class NativeEnd(NamedTuple):
    """End of a process as its runtime reports it."""

    type: str
    message: str
    frames: tuple[Frame, ...] = ()
    line: int = 0
    """Line of the output with the message."""


def _may_begin(body: str) -> bool:
    """True if a line has a word of such a report; cheap, for every line is asked."""
    return (
        "panic" in body
        or "Assertion" in body
        or "fatal error" in body
        or "Exception in thread" in body
        or "forrtl" in body
    )


class NativeEnds:
    """Reader of the lines of one process."""

    def __init__(self) -> None:
        self._open: NativeEnd | None = None
        """Report of which another line is to come: the message of Rust, the stack that confirms one of Go."""

    def take(self, number: int, body: str) -> NativeEnd | None:
        """Return the end that is complete with this line."""
        before = self._open
        if before is not None and before.type == "Rust panic":
            self._open = None
            return before._replace(message=f"{body.strip()[:500]} ({before.message})")
        if before is not None and (number - before.line > _NEAR or _GOROUTINE.match(body)):
            self._open = None
            if number - before.line <= _NEAR:
                return before
        return self._begin(number, body) if _may_begin(body) else None

    def _begin(self, number: int, body: str) -> NativeEnd | None:
        if m := _C.match(body):
            part = {key.rstrip("23"): value for key, value in m.groupdict().items() if value is not None}
            frame = Frame(part["file"], int(part["line"]), part["function"])
            return NativeEnd("Assertion failed", f"{part['says']} ({frame.file}:{frame.line})", (frame,), number)
        if m := _RUST.match(body):
            frame = Frame(m["file"], int(m["line"]), "")
            found = NativeEnd("Rust panic", f"{frame.file}:{frame.line}", (frame,), number)
            if m["more"] is None:
                return found._replace(message=f"{m['says']} ({found.message})" if m["says"] else found.message)
            self._open = found
        elif m := _GO.match(body):
            self._open = NativeEnd(f"Go {m['kind']}", m["says"], (), number)
        elif m := _JVM.match(body):
            return NativeEnd(m["type"], m["says"] or "", (), number)
        elif m := _FORTRAN.match(body):
            return NativeEnd("Fortran error", m["says"], (), number)
        return None
