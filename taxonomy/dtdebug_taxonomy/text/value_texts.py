"""Values of a program as the account writes them (`list of 4 x Tensor[49] int64 1..3`), read back as data.

What a text does not say stays unknown: a field is None, and no text is ever evaluated.
"""

from __future__ import annotations

import ast
import re
from typing import Literal

import msgspec

from dtdebug_taxonomy.text.lazy_re import lazy_re

Kind = Literal["tensor", "sequence", "mapping", "module", "number", "text", "none", "type", "object"]

_TENSOR = lazy_re(r"(?P<name>ndarray|[A-Z]\w{0,60})\[(?P<shape>[\d, ?]{0,80})\](?: (?P<dtype>[a-z]\w{2,20}))?")
_LIMIT = r"-?\d{1,20}(?:\.\d{1,20})?(?:e[+-]?\d{1,4})?|-?inf|nan"
_RANGE = lazy_re(rf" (?P<low>{_LIMIT})(?:\.\.(?P<high>{_LIMIT}))?(?=\Z|[,\]}})])")
_STRIDE = lazy_re(r", (?:not contiguous: )?stride \([\d, ]{0,80}\)")
_DEVICE = lazy_re(r" on (?P<device>[a-z]{2,12}(?::\d{1,3})?)")
_PLACEMENTS = lazy_re(r" \((?:'?_?[A-Z]\w{2,20}'?(?:\([^()\n]{0,40}\))?,? ?){1,8}\)")
_SEQUENCE = lazy_re(r"(?P<name>list|tuple|set|frozenset|bytes|bytearray|dict) of (?P<length>\d{1,12})")
_RANGE_OBJECT = lazy_re(r"range\((?P<begin>-?\d{1,15}), (?P<end>-?\d{1,15})\)")
_FIELDS = lazy_re(r"(?P<name>[A-Z]\w{0,60})\((?=\)|[a-z_]\w*=|[A-Z<'])")
_FIELD = lazy_re(r"(?P<name>[a-z_]\w{0,40})=")
_NUMBER = lazy_re(r"-?(?:\d{1,40}(?:\.\d{0,40})?(?:e[+-]?\d{1,4})?|inf|nan)(?![\w.])")
_QUOTED = lazy_re(r"'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"")
_OBJECT = lazy_re(r"<(?P<name>[A-Za-z_]\w{0,80})(?: of (?:length )?(?P<length>\d{1,12}))?[^<>\n]{0,120}>")
_TYPE = lazy_re(
    r"torch\.(?P<dtype>[a-z]\w{2,20})(?!\w)|class (?P<name>[A-Za-z_]\w{0,80})"
    r"|(?P<device>(?:cpu|cuda|mps|xpu|meta|hpu|npu)(?::\d{1,3})?)(?![\w:])"
)
_BRACKETS = {"[": ("]", "list"), "(": (")", "tuple")}
_SHOWN_ITEMS = 5
"""Number of elements up to which a text speaks of all of them."""
_WORD = lazy_re(r"(?:None|True|False)(?!\w)")
_DEEP = 4


class Value(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A value as far as its text describes it."""

    kind: Kind
    name: str = ""
    """Class: `Tensor`, `list`, `Linear`."""
    shape: tuple[int, ...] | None = None
    dtype: str | None = None
    device: str | None = None
    low: float | None = None
    high: float | None = None
    """Smallest and largest element of a tensor."""
    contiguous: bool | None = None
    length: int | None = None
    items: tuple[Value, ...] = ()
    """Elements, or the values of a mapping; one alone stands for all of a uniform sequence."""
    keys: tuple[str, ...] = ()
    whole: bool = False
    """True if `items` or `keys` are all that there are."""
    plain: int | float | str | bool | None = None
    """The number, string or truth value itself."""
    fields: dict[str, Value] = {}
    """Attributes of a module that the text shows: `in_features`."""


def read_value(text: str) -> Value | None:
    """Return the value that a text describes; None if the text is of another form or was cut off in its first part."""
    found, end = _Reader(text).value(0)
    return found if found is not None and not text[end:].strip(" .") else None


class _Reader:
    """Reads one text from left to right; each method returns what it found and the offset behind it."""

    def __init__(self, text: str) -> None:
        self.text = text

    def value(self, at: int, depth: int = 0) -> tuple[Value | None, int]:
        if depth > _DEEP:
            return None, at
        if found := _SEQUENCE.match(self.text, at):
            return self.sequence(found, depth)
        if found := _TENSOR.match(self.text, at):
            return self.tensor(found)
        if found := _FIELDS.match(self.text, at):
            return self.module(found, depth)
        if self.text.startswith("{", at):
            return self.mapping(at + 1, depth)
        if self.text.startswith("Size(", at):  # of torch
            at += len("Size")
        if bracket := _BRACKETS.get(self.text[at : at + 1]):
            return self.literal(at + 1, bracket, depth)
        return self.scalar(at)

    def scalar(self, at: int) -> tuple[Value | None, int]:
        if found := _WORD.match(self.text, at):
            said = found[0]
            flag = Value(kind="number", name="bool", plain=said == "True")
            return Value(kind="none") if said == "None" else flag, found.end()
        if found := _QUOTED.match(self.text, at):
            return _text_of(found[0], cut=self.text.startswith("...", found.end())), self.behind_cut(found.end())
        if found := _TYPE.match(self.text, at):
            plain = found["dtype"] or found["device"]
            name = found["name"] or ("device" if found["device"] else "dtype")
            return Value(kind="type", name=name, plain=plain, dtype=found["dtype"], device=found["device"]), found.end()
        if found := _RANGE_OBJECT.match(self.text, at):
            size = max(0, int(found["end"]) - int(found["begin"]))
            return Value(kind="sequence", name="range", length=size), found.end()
        if found := _NUMBER.match(self.text, at):
            return _number_of(found[0]), found.end()
        if found := _OBJECT.match(self.text, at):
            length = int(found["length"]) if found["length"] else None
            return Value(kind="object", name=found["name"], length=length), found.end()
        return None, at

    def behind_cut(self, at: int) -> int:
        """Return the end of a long string that is shown as `'first'...'last'`."""
        if not self.text.startswith("...", at):
            return at
        rest = _QUOTED.match(self.text, at + 3)
        return rest.end() if rest else at + 3

    def tensor(self, found: re.Match[str]) -> tuple[Value, int]:
        """Return a tensor; device, stride and range follow in any order."""
        own = found["name"] in {"Tensor", "Parameter"}
        end, device = found.end(), "cpu" if own else None
        contiguous: bool | None = True if own else None
        low: float | None = None
        high: float | None = None
        begin = -1
        while begin != end:
            begin = end
            if more := _RANGE.match(self.text, end):
                low, high, end = _limit(more["low"]), _limit(more["high"] or more["low"]), more.end()
            if more := _STRIDE.match(self.text, end):
                contiguous, end = False, more.end()
            if more := _DEVICE.match(self.text, end):
                device, end = more["device"], more.end()
            if more := _PLACEMENTS.match(self.text, end):
                end = more.end()
        sizes = [n.strip() for n in found["shape"].split(",") if n.strip()]
        return Value(
            kind="tensor",
            name=found["name"],
            shape=None if "?" in sizes else tuple(int(n) for n in sizes),
            dtype=found["dtype"],
            device=device,
            low=low,
            high=high,
            contiguous=contiguous,
            plain=_single(sizes, low),
        ), end

    def literal(self, at: int, bracket: tuple[str, str], depth: int) -> tuple[Value, int]:
        """Return a short list or tuple, which is written as in a program."""
        close, name = bracket
        items, end = self.members(at, close, depth)
        whole = self.text.startswith(close, end - 1)
        length = len(items) if whole else None
        return Value(kind="sequence", name=name, length=length, items=items, whole=whole), end

    def sequence(self, found: re.Match[str], depth: int) -> tuple[Value | None, int]:
        length, name, end = int(found["length"]), found["name"], found.end()
        if self.text.startswith(" x ", end):
            item, end = self.value(end + 3, depth + 1)
            whole = item is not None and length <= _SHOWN_ITEMS
            every = () if item is None else (item,)
            return Value(kind="sequence", name=name, length=length, items=every, whole=whole), end
        items: tuple[Value, ...] = ()
        if name == "dict" and self.text.startswith(": {", end):
            found_keys, end = self.mapping(end + 3, depth)
            return msgspec.structs.replace(found_keys, length=length), end
        if self.text.startswith((": [", ": (", ": {"), end):
            items, end = self.members(end + 3, "])}"["[({".index(self.text[end + 2])], depth)
        whole = len(items) == length
        return Value(kind="sequence", name=name, length=length, items=items, whole=whole), end

    def members(self, at: int, close: str, depth: int) -> tuple[tuple[Value, ...], int]:
        """Return the elements up to the closing bracket; those behind one that is not understood are left out."""
        items: list[Value] = []
        while at < len(self.text) and not self.text.startswith(close, at):
            if self.text.startswith("...", at):
                at += 3
                continue
            item, end = self.value(at, depth + 1)
            if item is None:
                return tuple(items), len(self.text) + 1
            items.append(item)
            at = end + 2 if self.text.startswith(", ", end) else end
            if at == end and not self.text.startswith(close, at):
                return tuple(items), len(self.text) + 1
        return tuple(items), at + len(close)

    def mapping(self, at: int, depth: int) -> tuple[Value, int]:
        keys: list[str] = []
        items: list[Value] = []
        whole = True
        while at < len(self.text) and not self.text.startswith("}", at):
            key, end = self.scalar(at)
            if key is None or not self.text.startswith(": ", end):
                whole = False
                at = len(self.text)
                break
            keys.append(str(key.plain))
            item, end = self.value(end + 2, depth + 1)
            if item is None:
                whole = False
                at = len(self.text)
                break
            items.append(item)
            at = end + 2 if self.text.startswith(", ", end) else end
            if at == end and not self.text.startswith("}", at):
                whole = False
                at = len(self.text)
        whole = whole and self.text.startswith("}", at)
        length = len(keys) if whole else None
        return Value(
            kind="mapping", name="dict", length=length, items=tuple(items), keys=tuple(keys), whole=whole
        ), min(at + 1, len(self.text))

    def module(self, found: re.Match[str], depth: int) -> tuple[Value, int]:
        """Return `Linear(in_features=2, out_features=3)`, or a wrapper around one: `FullyShard(Linear(...))`."""
        at, fields = found.end(), dict[str, Value]()
        if _FIELDS.match(self.text, at):
            inner, at = self.value(at, depth + 1)
            items = () if inner is None else (inner,)
            return Value(kind="module", name=found["name"], items=items), _behind(self.text, at, ")")
        while more := _FIELD.match(self.text, at):
            value, end = self.value(more.end(), depth + 1)
            if value is None:
                break
            fields[more["name"]] = value
            at = end + 2 if self.text.startswith(", ", end) else end
        return Value(kind="module", name=found["name"], fields=fields), _behind(self.text, at, ")")


def _single(sizes: list[str], low: float | None) -> int | float | None:
    """Return the number that a tensor without dimensions holds."""
    return low if not sizes else None


def _behind(text: str, at: int, close: str) -> int:
    return at + len(close) if text.startswith(close, at) else len(text)


def _limit(text: str) -> float | None:
    """Return an end of a range; None if the text has rounded it, for then a bound may lie on either side."""
    try:
        return None if text == "nan" or "e" in text else float(text)
    except ValueError:
        return None


def _number_of(text: str) -> Value | None:
    try:
        plain = int(text) if text.lstrip("-").isdigit() else float(text)
    except ValueError:
        return None
    return Value(kind="number", name=type(plain).__name__, plain=plain)


def _text_of(quoted: str, *, cut: bool) -> Value:
    """Return a string; the value of one that is not shown whole is unknown."""
    try:
        plain = None if cut else ast.literal_eval(quoted)
    except (ValueError, SyntaxError):
        plain = None
    return Value(kind="text", name="str", plain=plain, length=None if plain is None else len(plain))
