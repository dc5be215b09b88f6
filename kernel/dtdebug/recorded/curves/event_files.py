"""Reads scalars from TensorBoard event files: the framing of their records, and the few protobuf fields that hold them.

A record is its length (8 bytes), the masked CRC-32C of the length, the data, and the masked CRC-32C of the data:
https://www.tensorflow.org/tutorials/load_data/tfrecord#tfrecords_format_details. The data is an `Event`:
https://github.com/tensorflow/tensorboard/blob/master/tensorboard/compat/proto/event.proto, whose `Summary` holds a
float (`simple_value`) or a tensor of one number:
https://github.com/tensorflow/tensorboard/blob/master/tensorboard/compat/proto/summary.proto; the encoding of both:
https://protobuf.dev/programming-guides/encoding/.

The checksum of each length is verified, for otherwise no later record can be found. That of the data is verified where
something hangs on it: where the data can't be decoded, and where a value is NaN or infinite. To verify all would take
ten times as long as to read them.
"""

from __future__ import annotations

import math
import re
import struct
from array import array
from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple

_POLYNOMIAL, _DELTA = 0x82F63B78, 0xA282EAD8
_HEADER = struct.Struct("<QI")
_CHUNK = 1 << 20
_MOST = 1 << 28
"""Maximum size of a record; larger ones are taken for damage."""
_SMALL = 4096
"""Maximum size of a record that is looked at: images and histograms are larger, and of no interest."""
_SCALAR = re.compile(
    rb"\x09.{8}(?:\x10([\x80-\xff]{0,9}[\x00-\x7f]))?\x2a[\x01-\x7f]\x0a[\x01-\x7f]\x0a([\x01-\x7f])([^\x15]{1,127})\x15(.{4})\Z",
    re.DOTALL,
)
"""The usual record: time, step, one tag of at most 127 bytes, one float."""
_FLOAT, _DOUBLE = struct.Struct("<f"), struct.Struct("<d")
_DT_FLOAT, _DT_DOUBLE = 1, 2


class Scalars(NamedTuple):
    """Values of one tag."""

    steps: array[float]
    values: array[float]


class Damage(NamedTuple):
    """Place at which a file can't be read on, or data that is not what was written."""

    offset: int
    what: str


def _table() -> list[int]:
    rows = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = (value >> 1) ^ (_POLYNOMIAL if value & 1 else 0)
        rows.append(value)
    return rows


_TABLE = _table()


def masked_crc(data: bytes) -> int:
    """Return the masked CRC-32C of some bytes."""
    value = 0xFFFFFFFF
    for byte in data:
        value = _TABLE[(value ^ byte) & 0xFF] ^ (value >> 8)
    value ^= 0xFFFFFFFF
    return (((value >> 15) | (value << 17)) + _DELTA) & 0xFFFFFFFF


def is_event_file(head: bytes) -> bool:
    """True if a file begins with a record."""
    if len(head) < _HEADER.size:
        return False
    length, crc = _HEADER.unpack_from(head)
    return bool(0 < length < _MOST and masked_crc(head[:8]) == crc)


def read_scalars(  # noqa: PLR0912, PLR0915 - one loop over millions of records
    file: BinaryIO, wanted: Callable[[str], bool]
) -> tuple[dict[str, Scalars], list[Damage]]:
    """Return the scalars of a file by their tags, and where it is damaged; damage to the framing ends it."""
    known: dict[int, int] = {}
    found: dict[bytes, Scalars | None] = {}
    damage: list[Damage] = []
    buffer, begin, offset = b"", 0, 0
    unpack, match, to_float = _HEADER.unpack_from, _SCALAR.match, _FLOAT.unpack
    while True:
        if len(buffer) - begin < _HEADER.size:
            buffer, begin = buffer[begin:] + file.read(_CHUNK), 0
            if len(buffer) < _HEADER.size:
                if buffer:
                    damage.append(Damage(offset, _CUT_OFF))
                break
        length, crc = unpack(buffer, begin)
        if known.get(length) != crc:
            if length > _MOST or masked_crc(buffer[begin : begin + 8]) != crc:
                damage.append(Damage(offset, "the checksum of a record's length is wrong: not read further"))
                break
            known[length] = crc
        size = 16 + length
        if len(buffer) - begin < size:
            missing = size - (len(buffer) - begin)
            if length > _SMALL:
                buffer, begin = b"", 0
                if _skip(file, missing) < missing:
                    damage.append(Damage(offset, _CUT_OFF))
                    break
                offset += size
                continue
            buffer, begin = buffer[begin:] + file.read(max(_CHUNK, missing)), 0
            if len(buffer) < size:
                damage.append(Damage(offset, _CUT_OFF))
                break
        if length <= _SMALL:
            row = match(buffer, begin + 12, begin + 12 + length)
            if row is not None:
                step, tag_size, tag, raw = row.groups()
                if tag_size[0] != len(tag):
                    row = None
            if row is None:
                data = buffer[begin + 12 : begin + 12 + length]
                if (what := _add_general(data, buffer[begin + 12 + length : begin + size], found, wanted)) is not None:
                    damage.append(Damage(offset, what))
            else:
                try:
                    rows = found[tag]
                except KeyError:
                    rows = found[tag] = _rows_of(tag, wanted)
                if rows is not None:
                    (value,) = to_float(raw)
                    if value - value == 0 or _is_whole(buffer, begin, length):  # finite, or written so
                        rows.steps.append(0 if step is None else step[0] if len(step) == 1 else _varint(step, 0)[0])
                        rows.values.append(value)
                    else:
                        damage.append(Damage(offset, _CHANGED))
        begin += size
        offset += size
    return {tag.decode("utf-8", "replace"): rows for tag, rows in found.items() if rows is not None}, damage


_CUT_OFF = "ends within a record: it is cut off, or still written"
_CHANGED = "the checksum of a record's data is wrong: left out"


def _rows_of(tag: bytes, wanted: Callable[[str], bool]) -> Scalars | None:
    return Scalars(array("d"), array("d")) if wanted(tag.decode("utf-8", "replace")) else None


def _is_whole(buffer: bytes, begin: int, length: int) -> bool:
    end = begin + 12 + length
    return masked_crc(buffer[begin + 12 : end]) == int.from_bytes(buffer[end : end + 4], "little")


def _add_general(
    data: bytes, crc: bytes, found: dict[bytes, Scalars | None], wanted: Callable[[str], bool]
) -> str | None:
    """Add the scalars of a record of another form; return what is wrong with it."""
    try:
        rows = list(_event(data))
    except (ValueError, IndexError, struct.error):
        return "a record can't be decoded: left out"
    if any(not math.isfinite(value) for _, _, value in rows) and masked_crc(data) != int.from_bytes(crc, "little"):
        return _CHANGED
    for tag, step, value in rows:
        if tag not in found:
            found[tag] = _rows_of(tag, wanted)
        if (known := found[tag]) is not None:
            known.steps.append(step)
            known.values.append(value)
    return None


def _skip(file: BinaryIO, count: int) -> int:
    done = 0
    while done < count and (chunk := file.read(min(_CHUNK, count - done))):
        done += len(chunk)
    return done


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value - (1 << 64) if value >= 1 << 63 else value), at
        shift += 7
        if shift > 63:
            raise ValueError("a number of more than 64 bits")


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield number and value of the fields of a message: fixed and length-delimited ones as bytes."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        wire = key & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield key >> 3, value
            continue
        if wire == 2:
            length, at = _varint(data, at)
        elif wire in (1, 5):
            length = 8 if wire == 1 else 4
        else:
            raise ValueError(f"wire type {wire}")
        if length < 0 or at + length > len(data):
            raise ValueError("a field that ends beyond its message")
        yield key >> 3, data[at : at + length]
        at += length


def _event(data: bytes) -> Iterator[tuple[bytes, int, float]]:
    """Yield tag, step and value of the scalars of an event."""
    step, summaries = 0, list[bytes]()
    for number, value in _fields(data):
        if number == 2 and isinstance(value, int):
            step = value
        elif number == 5 and isinstance(value, bytes):
            summaries.append(value)
    for summary in summaries:
        for number, value in _fields(summary):
            if number == 1 and isinstance(value, bytes) and (found := _summary_value(value)) is not None:
                yield found[0], step, found[1]


def _summary_value(data: bytes) -> tuple[bytes, float] | None:
    tag, result = b"", None
    for number, value in _fields(data):
        if not isinstance(value, bytes):
            continue
        if number == 1:
            tag = value
        elif number == 2 and len(value) == 4:
            (result,) = _FLOAT.unpack(value)
        elif number == 8:
            result = _tensor(value)
    return (tag, result) if tag and result is not None else None


def _tensor(data: bytes) -> float | None:
    """Return the number of a tensor that holds one float or double; None of any other."""
    kind, content, result = 0, b"", None
    for number, value in _fields(data):
        if number == 1 and isinstance(value, int):
            kind = value
        elif number == 4 and isinstance(value, bytes):
            content = value
        elif number == 5 and isinstance(value, bytes) and len(value) == 4:
            (result,) = _FLOAT.unpack(value)
        elif number == 6 and isinstance(value, bytes) and len(value) == 8:
            (result,) = _DOUBLE.unpack(value)
    if kind == _DT_FLOAT and len(content) == 4:
        return float(_FLOAT.unpack(content)[0])
    if kind == _DT_DOUBLE and len(content) == 8:
        return float(_DOUBLE.unpack(content)[0])
    return result if kind in (_DT_FLOAT, _DT_DOUBLE) else None
