"""Secrets by how they look: private keys, tokens of vendors, signed tokens, and long runs that nobody wrote."""

from __future__ import annotations

import re
import tomllib
from functools import lru_cache
from pathlib import Path

from dtdebug.masking.noise import is_random

# Up to its end or, where that is cut off, as far as it looks like a key.
_KEY_BLOCK = re.compile(
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:[^-]*+(?:-(?!----)[^-]*+)*+-----END [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    r"|(?:(?:\s|\\[nr])*+[A-Za-z0-9+/=]{16,}+)++)"
)
_SIGNED = re.compile(
    r"eyJ(?<![A-Za-z0-9]eyJ)[A-Za-z0-9_-]{10,}+\.[A-Za-z0-9_-]{10,}+\.[A-Za-z0-9_-]{0,8192}+(?:\.[A-Za-z0-9_-]{0,8192}+){0,2}"
)
_HOOKS = {
    "hooks.slack.com/": re.compile(
        r"hooks\.slack\.com/(?:services|workflows|triggers)/"
        r"(?P<s>[A-Za-z0-9+/_-]{20,200})"
    ),
    "/api/webhooks/": re.compile(r"/api/webhooks/\d{5,25}/(?P<s>[A-Za-z0-9_-]{20,120})"),
    ".webhook.office.com/": re.compile(r"\.webhook\.office\.com/webhookb2/(?P<s>[A-Za-z0-9@/-]{40,400})"),
    ":AA": re.compile(r"(?<!\d)(?P<s>\d{8,10}:AA[A-Za-z0-9_-]{32,35})"),
    "Q~": re.compile(r"(?<![\w~.-])(?P<s>[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{31,34})(?![\w~-])"),
    "-us": re.compile(r"(?<![A-Za-z0-9])(?P<s>[a-f0-9]{32}-us\d{1,2})(?!\w)"),
    "|": re.compile(r"(?<!\d)(?P<s>\d{15,16}\|[A-Za-z0-9_-]{27,40})(?![\w|-])"),
    ".xox": re.compile(r"(?<!\w)(?P<s>xoxe\.xox[bp]-\d-[A-Za-z0-9]{100,200})"),
    ".atlasv1.": re.compile(r"(?<!\w)(?P<s>[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,70})"),
}
"""What stands in its middle, and the whole."""
_RUN = re.compile(r"[A-Za-z0-9+/_-]{32,4096}+={0,2}")


def keys(text: str) -> list[tuple[int, int]]:
    """Private keys."""
    return [found.span() for found in _KEY_BLOCK.finditer(text)] if "PRIVATE KEY" in text else []


def spans(text: str) -> list[tuple[int, int]]:
    """All other secrets that can be known by their look."""
    found = [m.span() for begin, shape in _vendors() if begin in text for m in shape.finditer(text)]
    if "eyJ" in text:
        found += (m.span() for m in _SIGNED.finditer(text))
    found += (m.span("s") for middle, whole in _HOOKS.items() if middle in text for m in whole.finditer(text))
    if len(text) >= 32:
        found += (m.span() for m in _RUN.finditer(text) if not m[0].startswith(("_Z", "/")) and is_random(m[0]))
    return found


@lru_cache(maxsize=1)
def _vendors() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """The beginnings of tokens, longest first, and their patterns."""
    table = tomllib.loads((Path(__file__).parent / "vendors.toml").read_text(encoding="utf-8"))
    rows = {begin: shape for vendor in table.values() for begin, shape in vendor.items()}
    return tuple(
        (begin, re.compile(f"(?:(?<![A-Za-z0-9_])|(?<=\\\\[nrt])){re.escape(begin)}[{allowed}]{{{least},}}+"))
        for begin, (allowed, least) in sorted(rows.items(), key=lambda row: -len(row[0]))
    )
