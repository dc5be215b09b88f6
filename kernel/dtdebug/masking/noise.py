"""Tells random characters from what a person wrote: words, names, numbers, hashes."""

from __future__ import annotations

import math
import re
from functools import lru_cache

_SYMBOLS = "abcdefghijklmnopqrstuvwxyz0-"
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_COUNTED = (
    "kb79kfalbld687h9k685bedecfhc",
    "5hcd6fdl8al5ee8eoa9f6kemand9",
    "7jbg6gk6bp79gk5dm8d79jlmcqfa",
    "7eea4eek6ikcegacjcab8hgedke5",
    "9f87dbciemk9a7gbe567gcd9ekg6",
    "7ggf88il4pm8ha6eg8aa7meedpd9",
    "9ieg3hca8jladaddm67d9jjpenh6",
    "5gef4ggi7njebg6fiab9cjimdph5",
    "ab79bb9mlnh9946bjb77lbretake",
    "7jff4lhl7jdiif4enj6g8djjiie8",
    "afff3efi8mjbdcfcjd7fce8igng5",
    "6fea4egk5nj8gi6epga99fjobpf7",
    "5ahf4him8oieag66ngafajjkeof7",
    "7g877a7iaiddfb8ang66bbiiili7",
    "bb98hcbmdjd884b9o5aa8dbgjmka",
    "6jdd5iha9oj7hj79n6a97jko9sf8",
    "cgahhgikfoe8fajcgbcd1jinllg7",
    "6h9a5gaj7odeab7ena99bcgqbri7",
    "ai8f6dh97nddeg8aff749ihmbpf6",
    "7hbf4fh96kkeeh8cl79bchfjamd6",
    "9a9b8cdtbrn686f8s785mmsislbd",
    "4jfi3jfl5kpiejacqifeklliloc9",
    "5jfc7igb5nidha7go67fkhiklnj6",
    "ah8f6dhf8plddgf5lfc5ihifbpb4",
    "bbbdaedhcjkb87b4ic87feenkgf4",
    "7klk1jliaoleij6fomjlkcnmbcfc",
    "dddabcjkihmigkjgnhgamjlhop15",
    "8a78a99c8gd999a8f978bcchkhb8",
)
"""Which character follows which in names that people write: a row for the character before, a column for the one after
(letters, any digit, any other), in half bits of -log2 P, base 36. Counted over the names in the sources of
the standard library, PyTorch, Transformers and Accelerate, 183,000 different ones, by `benchmarks/written_pairs.py`.
"""
_FOLLOWS = {
    a + b: -_DIGITS.index(bits) / 2
    for a, row in zip(_SYMBOLS, _COUNTED, strict=True)
    for b, bits in zip(_SYMBOLS, row, strict=True)
}
_CASES = {"ll": math.log2(0.93), "lu": math.log2(0.07), "ul": math.log2(0.45), "uu": math.log2(0.55)}
"""Capitals behind small letters and the other way round, counted likewise."""
_SEGMENT = re.compile(r"[A-Za-z0-9]{1,4096}")
_HEX = re.compile(r"(?:0x)?(?:[0-9a-f]{6,4096}|[0-9A-F]{6,4096}|\d{1,4096})\Z")
_HASH = re.compile(
    r"(?=[^\d]{0,64}\d)(?:[0-9a-f]{12,512}|[0-9A-F]{12,512}|[0-9A-Fa-f]{24,512}|(?i:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}))\Z"
)
_PARTS = re.compile(r"[-_:.]")
_SIZES = re.compile(r"[A-Za-z]?\d{0,9}(?:x\d{1,9}){2,64}\Z|(?:[a-z]{1,2}\d{1,4}){3,64}\Z")
"""`64x64x3`, `ih306oh304kh3`."""
_GRAPH = re.compile(r"[acf][a-z2-7]{51}\Z")
"""How torch names code, graphs and derivatives: `c`, `f` or `a` and 51 characters of a SHA-256 in base 32
(torch/_inductor/codecache.py, torch/_functorch/_aot_autograd/autograd_cache.py)."""
_BETWEEN = re.compile("[\"'], [\"']")
_LEAST, _IN_ONE, _BITS, _BITS_NAMED, _EACH = 20, 9, 34.0, 9.0, 1.3
"""Characters in all and in one piece; bits where nothing names them, and where something does; bits of a character."""


@lru_cache(maxsize=16_384)
def bits(segment: str) -> float:
    """How much likelier letters and digits are by chance than by hand, in bits: positive if nobody wrote them so."""
    mixed = not segment.islower() and not segment.isupper()
    letter, digit = (math.log2(2 / 62), math.log2(10 / 62)) if mixed else (math.log2(1 / 36), math.log2(10 / 36))
    total, before, case = 0.0, "-", ""
    for c in segment:
        symbol = "0" if c.isdigit() else c.lower()
        total += (digit if symbol == "0" else letter) - _FOLLOWS[before + symbol]
        now = "" if symbol == "0" else "u" if c.isupper() else "l"
        if mixed and case and now:
            total -= 1 + _CASES[case + now]
        before, case = symbol, now
    return total


def is_random(text: str) -> bool:
    """Nobody wrote this, though nothing says what it is; numbers and hashes are none."""
    found, size, longest = _most(text)
    return size >= _LEAST and longest >= _IN_ONE and found >= _BITS and found >= _EACH * size


def is_opaque(word: str) -> bool:
    """No word, name, number or path: enough to hide a value that something calls a secret."""
    found, size, _ = _most(word)
    return size >= 8 and found >= _BITS_NAMED and found >= 0.6 * size


def is_hash(word: str) -> bool:
    """Hexadecimal digits in a row, or a UUID: as many keys look, and as many things that are none."""
    return _HASH.match(word) is not None


def is_made(word: str) -> bool:
    """Either, also behind a beginning that tells of what it is: `pri_0f71...`."""
    return is_opaque(word) or is_hash(word) or is_hash(_PARTS.split(word)[-1])


def _most(text: str) -> tuple[float, int, int]:
    """Of the segments that stand side by side and are least like written ones: their bits, size and longest one."""
    best, here = (0.0, 0, 0), (0.0, 0, 0)
    for segment in _SEGMENT.findall(text):
        if (
            _HEX.match(segment)
            or _SIZES.match(segment)
            or _GRAPH.match(segment)
            or len(set(segment)) <= max(3, min(len(segment), 64) // 4)
        ):
            continue  # a number, a hash, or one character again and again
        size = len(segment)
        here = here[0] + bits(segment), here[1] + size, max(here[2], size)
        here = here if here[0] > 0 else (0.0, 0, 0)
        best = max(best, here)
    return best


def flat(text: str) -> str:
    """A list's words as one line of the same length: `['-u', 'a:b']` is read as the command that it is."""
    return _BETWEEN.sub("    ", text)
