"""Distinguishes random characters from text that people write: words, names, numbers, hashes."""

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
"""Frequencies of character pairs in names that people write: one row per first character, one column per second
(letters, any digit, any other), in half bits of -log2 P, base 36. Counted over the names in the sources of
the standard library, PyTorch, Transformers and Accelerate, 183,000 different ones, by `benchmarks/written_pairs.py`.
"""
_FOLLOWS = {
    a + b: -_DIGITS.index(bits) / 2
    for a, row in zip(_SYMBOLS, _COUNTED, strict=True)
    for b, bits in zip(_SYMBOLS, row, strict=True)
}
_CASES = {"ll": math.log2(0.93), "lu": math.log2(0.07), "ul": math.log2(0.45), "uu": math.log2(0.55)}
"""Log probabilities of a change of case, and of none, counted in the same way."""
_SEGMENT = re.compile(r"[A-Za-z0-9]{1,4096}")
_HEX = re.compile(r"(?:0x)?(?:[0-9a-f]{6,4096}|[0-9A-F]{6,4096}|\d{1,4096})\Z")
_HASH = re.compile(
    r"(?=[^\d]{0,64}\d)(?:[0-9a-f]{12,512}|[0-9A-F]{12,512}|[0-9A-Fa-f]{24,512}|(?i:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}))\Z"
)
_PARTS = re.compile(r"[-_:.]")
_SIZES = re.compile(r"[A-Za-z]?\d{0,9}(?:x\d{1,9}){2,64}\Z|(?:[a-z]{1,2}\d{1,4}){3,64}\Z")
"""Sizes and counts such as `64x64x3` or `ih306oh304kh3`."""
_GRAPH = re.compile(r"[acf][a-z2-7]{51}\Z")
"""torch's names of code, graphs and derivatives: `c`, `f` or `a` and 51 characters of a SHA-256 in base 32
(torch/_inductor/codecache.py, torch/_functorch/_aot_autograd/autograd_cache.py)."""
_BETWEEN = re.compile("[\"'], [\"']")
_LEAST, _IN_ONE, _BITS, _BITS_NAMED, _EACH = 20, 9, 34.0, 9.0, 1.3
"""Minimum characters in total and in one piece; bits required without and with a marking name; bits per character."""


@lru_cache(maxsize=16_384)
def bits(segment: str) -> float:
    """Return by how many bits a string is more likely random than written by hand; positive if it looks random."""
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
    """True if the text is random even without a marking name; numbers and hashes don't count."""
    found, size, longest = _most(text)
    return size >= _LEAST and longest >= _IN_ONE and found >= _BITS and found >= _EACH * size


def is_opaque(word: str) -> bool:
    """True if it isn't a word, name, number or path: enough to mask a value whose name marks a secret."""
    found, size, _ = _most(word)
    return size >= 8 and found >= _BITS_NAMED and found >= 0.6 * size


def is_hash(word: str) -> bool:
    """True for hexadecimal digits in a row, or a UUID: the shape of many keys, and of many harmless values."""
    return _HASH.match(word) is not None


def is_made(word: str) -> bool:
    """True if the word is opaque or a hash, possibly after a descriptive prefix: `pri_0f71...`."""
    return is_opaque(word) or is_hash(word) or is_hash(_PARTS.split(word)[-1])


def _most(text: str) -> tuple[float, int, int]:
    """Return (bits, size, longest segment) of the adjacent segments that look most random."""
    best, here = (0.0, 0, 0), (0.0, 0, 0)
    for segment in _SEGMENT.findall(text):
        if (
            _HEX.match(segment)
            or _SIZES.match(segment)
            or _GRAPH.match(segment)
            or len(set(segment)) <= max(3, min(len(segment), 64) // 4)
        ):
            continue  # a number, a hash, or one character repeated
        size = len(segment)
        here = here[0] + bits(segment), here[1] + size, max(here[2], size)
        here = here if here[0] > 0 else (0.0, 0, 0)
        best = max(best, here)
    return best


def flat(text: str) -> str:
    """Join a list's words into one line of the same length: `['-u', 'a:b']` reads as a command line."""
    return _BETWEEN.sub("    ", text)
