"""Finds secrets by their shape: vendors' tokens, signed tokens, and long random strings."""

from __future__ import annotations

import base64
import bisect
import itertools
import re
from functools import cache, lru_cache
from pathlib import Path

import msgspec

from dtdebug.privacy.redact import assignments
from dtdebug.privacy.redact.randomness import is_hash, is_opaque, is_random
from dtdebug.privacy.redact.secret_names import secret
from dtdebug_taxonomy.knowledge.cache import load_cached
from dtdebug_taxonomy.text.lazy_re import lazy_re

_SIGNED = lazy_re(
    r"eyJ(?<![A-Za-z0-9]eyJ)[A-Za-z0-9_-]{10,}+\.(?:eyJ[A-Za-z0-9_-]{10,}+|[A-Za-z0-9_-]{10,}+(?=\.))"
    r"(?:\.[A-Za-z0-9_-]{0,8192}+){0,3}"
)
_HOOKS = {
    "hooks.slack.com/": lazy_re(
        r"hooks\.slack\.com/(?:services|workflows|triggers)/"
        r"(?P<s>[A-Za-z0-9+/_-]{20,200})"
    ),
    "/api/webhooks/": lazy_re(r"/api/webhooks/\d{5,25}/(?P<s>[A-Za-z0-9_-]{20,120})"),
    ".webhook.office.com/": lazy_re(r"\.webhook\.office\.com/webhookb2/(?P<s>[A-Za-z0-9@/-]{40,400})"),
    ":AA": lazy_re(r"(?<!\d)(?P<s>\d{8,10}:AA[A-Za-z0-9_-]{32,35})"),
    "Q~": lazy_re(r"(?<![\w~.-])(?P<s>[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{31,34})(?![\w~-])"),
    "-us": lazy_re(r"(?<![A-Za-z0-9])(?P<s>[a-f0-9]{32}-us\d{1,2})(?!\w)"),
    "|": lazy_re(r"(?<!\d)(?P<s>\d{15,16}\|[A-Za-z0-9_-]{27,40})(?![\w|-])"),
    ".xox": lazy_re(r"(?<!\w)(?P<s>xoxe\.xox[bp]-\d-[A-Za-z0-9]{100,200})"),
    "NRAL": lazy_re(r"(?<![A-Za-z0-9])(?P<s>[a-z0-9]{6}[A-Fa-f0-9]{30}(?:FFFF)?NRAL)(?!\w)"),
    "-NRMA": lazy_re(r"(?<!\w)(?P<s>[A-Za-z0-9]{6}[a-f0-9]{20,40}-NRMA)(?!\w)"),
    "1000.": lazy_re(r"(?<![\w.])1000\.(?P<s>[a-f0-9]{32}\.[a-f0-9]{32})(?!\w)"),
    "AZDO": lazy_re(r"(?<![A-Za-z0-9])(?P<s>[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4})(?![A-Za-z0-9])"),
    "$": lazy_re(
        r"(?<![\w$])(?P<s>\$(?:[\w-]{1,16}\$(?:[\w=,]{1,40}\$){0,2}[^$\s\"']{1,64}\$[A-Za-z0-9./+]{22,128}"
        r"|2[abxy]\$\d\d\$[A-Za-z0-9./]{53}|krb5\w{2,8}\$\d\d\$[\w@.:*$/-]{64,8192}))(?![\w.])"
    ),
    '"username': lazy_re(
        r"""(?x)"username\\{0,3}"\s{0,9}:\s{0,9}\\{0,3}"[^"\s]{1,99}"\s{0,9},\s{0,9}
        \\{0,3}"key\\{0,3}"\s{0,9}:\s{0,9}\\{0,3}"(?P<s>[0-9a-f]{32})"""
    ),
    "AC": lazy_re(r"(?<!\w)AC[0-9a-f]{32}:(?P<s>[0-9a-f]{32})(?!\w)"),
    ".atlasv1.": lazy_re(r"(?<!\w)(?P<s>[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,70})"),
}
"""Literal that each pattern contains -> the pattern."""
_RUN = lazy_re(r"[A-Za-z0-9+/_-]{20,}+={0,2}")
_HASHES = lazy_re(r"[a-f0-9]{32}-[a-f0-9]{8}-[a-f0-9]{8}\Z")
"""Keys of Mailgun."""
_FILE, _LINE = 2_000, 60
"""Maximum length of a run, and minimum length of equal lines, beyond which text is a file's content, not a secret."""
_PEER = lazy_re(r"(?:Qm[1-9A-HJ-NP-Za-km-z]{44}|12D3KooW[1-9A-HJ-NP-Za-km-z]{44}|baf[a-z2-7]{56,62})\Z")
"""Identifiers of nodes and content in peer-to-peer networks."""


_WORD = lazy_re(r"(?<![A-Za-z0-9_-])[A-Za-z][A-Za-z0-9_-]{18,600}+")
_MARKS = frozenset(["sk", "rk", "pat", "cfpat", "tok"])
_ADDRESS = lazy_re(r"[A-Za-z][A-Za-z0-9+.-]{1,20}:\\?/\\?/[^\s\"'<>)\]]{4,4096}")
_CAPABLE = lazy_re(r"(?i)hook|token(?!i)|secret|key|auth|invite|rpc|/bot|/v\d{1,2}/[A-Za-z0-9_-]{16,}")
"""Addresses with a secret in their path."""
_OF_CONTENT = lazy_re(r"(?i)[?&;](?:\w{0,16}id|version|hash|sha\d{0,3}|etag|rev|ref|file|name|usp|tab|list)=\Z")
_IN_PATH = lazy_re(r"(?:~|\.{1,2}|[A-Z]:)?[/\\]+[A-Za-z_.][\w.-]{1,64}[/\\]")
_ENDS = lazy_re(r"\.[a-z][a-z\d]{1,7}(?![\w.-])")
"""Ending of a file name."""
_DIGEST = lazy_re(r"(?i)(?:sha\d{1,3}|md5|blake\d\w?)(?:-|[:=]\Z)")
_PART = lazy_re(r"(?<=/)[A-Za-z0-9_@-]{8,256}")
_UUID = lazy_re(r"(?i)[a-f\d]{8}(?:-[a-f\d]{4}){3}-[a-f\d]{12}\Z")
_WORD_BEGINS = lazy_re(r"[\s\"'=,;:()\[\]{}<>|`]")
_CONTENT = ("iVBORw0KGgo", "/9j/", "R0lGOD", "UklGR", "PD94bWw", "PHN2Zy", "AAAA", "JVBER", "H4sI", "_Z")
"""Beginnings of encoded images, archives and C++ names."""
_NUMBERED = lazy_re(
    r"(?i)(?:(?<![a-z])id|uid|hash|digest|checksum|tag|group)\\{0,3}[\"']?"
    r"(?:[ \t]{0,3}[:=][ \t]{0,3}|[ \t])\\{0,3}[\"']?\Z"
)
"""Prefix of an identifier or digest in other characters."""
_SORTED = lazy_re(r"01[0-9A-HJKMNP-TV-Z]{24}\Z")
"""Identifier that begins with a timestamp."""


def spans(text: str) -> list[tuple[int, int]]:
    """Return the spans of secrets; private keys are handled in pem.py."""
    found = [
        m.span()
        for begin in vendors()
        if begin in text
        for m in _shape(begin).finditer(text)
        if set(m[0][len(begin) :].lower()) != {"x"}
    ]
    if "eyJ" in text:
        found += (m.span() for m in _SIGNED.finditer(text))
    found += (m.span("s") for middle, whole in _HOOKS.items() if middle in text for m in whole.finditer(text))
    if len(text) >= 20:
        found += filter(None, map(_marked_value, _WORD.finditer(text)))
        addresses = [m.span() for m in _ADDRESS.finditer(text)] if "//" in text or "\\/" in text else []
        runs = [m for m in _RUN.finditer(text) if len(m[0]) <= _FILE]
        wrapped = _wrapped_runs(text, runs)
        found += (
            m.span()
            for n, m in enumerate(runs)
            if n not in wrapped
            and (_HASHES.match(m[0]) or is_random(m[0]))
            and not _is_harmless_run(text, m, addresses)
        )
        found += _of_hooks(text, addresses)
    return found


def _wrapped_runs(text: str, runs: list[re.Match[str]]) -> set[int]:
    """Return the indices of runs that are lines of one file: at least three of equal length, one below the other."""
    below = [
        n
        for n, (one, two) in enumerate(itertools.pairwise(runs))
        if len(one[0]) == len(two[0]) >= _LINE and text[one.end() : two.start()][:24].count("\n") == 1
    ]
    inner = {n for n, m in itertools.pairwise(below) if m == n + 1}
    return {n + k for n in inner for k in range(3)}


def _marked_value(word: re.Match[str]) -> tuple[int, int] | None:
    """Return the span after a word that marks a secret: `xyz-secret-0f71...`, `sk_7523...`, `api_key-...`."""
    for at in (m.start() for m in re.finditer("[_-]", word[0][:80])):
        name, value = word[0][:at], word[0][at + 1 :]
        last = re.split("[_-]", name)[-1].lower()
        known = last in _MARKS or (last != "token" and secret(name) in ("strong", "key", "token"))
        if known and len(value) >= 16 and (is_opaque(value) or is_hash(value)):
            return word.start() + at + 1, word.end()
    return None


def _is_harmless_run(text: str, run: re.Match[str], addresses: list[tuple[int, int]]) -> bool:
    """True for a random string that is not secret: an image, digest, alphabet, or part of a path or link."""
    begin = run.start()
    before = text[max(0, begin - 64) : begin]
    if run[0].startswith("eyJ"):
        return not _holds_secret(run[0])
    content = run[0].startswith(_CONTENT) or "bcdefghijk" in run[0].lower() or before.endswith("base64,")
    if "/" in run[0] and _ENDS.match(text, run.end()):
        return True
    if content or any(shape.match(run[0]) for shape in (_PEER, _SORTED, _DIGEST)):
        return True
    if _DIGEST.search(before) or _NUMBERED.search(before):
        return True
    last = bisect.bisect_right(addresses, (begin, len(text))) - 1
    if last >= 0 and begin < addresses[last][1]:
        link = text[addresses[last][0] : begin]
        return (
            _OF_CONTENT.search(link) is not None
            if "?" in link or "&" in link
            else _CAPABLE.search(link + run[0]) is None
        )
    return _in_path(text, begin)


def _holds_secret(run: str) -> bool:
    """True if encoded JSON names a secret; a signed token has dots and is matched earlier."""
    letters = run.rstrip("=").translate({ord("-"): "+", ord("_"): "/"})
    text = base64.b64decode(letters[: len(letters) // 4 * 4]).decode("utf-8", "replace")
    return bool(assignments.spans(text))


def _in_path(text: str, begin: int) -> bool:
    """True if the surrounding word is the path of a file."""
    before = text[max(0, begin - 256) : begin + 64]
    inside = begin - max(0, begin - 256)
    start = max((m.end() for m in _WORD_BEGINS.finditer(before, 0, inside)), default=0)
    path = None if before.endswith("=") else _IN_PATH.match(before, start)
    return path is not None and not is_opaque(path[0])


def _of_hooks(text: str, addresses: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the spans of random parts in the paths of webhooks, identifiers included: they are all that is asked."""
    hooks = [(start, end) for start, end in addresses if "hook" in text[start:end].lower()]
    parts = (p for start, end in hooks for p in _PART.finditer(text, start, end))
    return [p.span() for p in parts if is_opaque(p[0]) or _UUID.match(p[0])]


@lru_cache(maxsize=1)
def vendors() -> dict[str, tuple[str, int]]:
    """Return beginning of a token -> (allowed characters, minimum number of them), longest first."""
    return load_cached("vendors", dict[str, tuple[str, int]], _read, (Path(__file__).parent,))


def _read() -> dict[str, tuple[str, int]]:
    data = Path(__file__).with_name("vendors.toml").read_bytes()
    table = msgspec.toml.decode(data, type=dict[str, dict[str, tuple[str, int]]])
    rows = {begin: shape for vendor in table.values() for begin, shape in vendor.items()}
    return dict(sorted(rows.items(), key=lambda row: -len(row[0])))


@cache
def _shape(begin: str) -> re.Pattern[str]:
    """Compile the pattern of a vendor's token lazily: there are about two hundred, and beginnings seldom occur."""
    allowed, least = vendors()[begin]
    return re.compile(f"(?:(?<![A-Za-z0-9_])|(?<=\\\\[nrt])){re.escape(begin)}[{allowed}]{{{least},}}+")
