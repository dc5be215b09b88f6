"""Classifies a value by its name; the word lists are data, in names.toml.

A name is read word by word: `access_token` is a secret, `pad_token`, `token_type_ids` and `tokenizer` are not.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

import msgspec

from dtdebug_taxonomy.knowledge.cache import load_cached

_WORDS = re.compile(r"[A-Z]{2,40}(?![a-z])|[A-Z]?[a-z]{1,40}|[A-Z]")
_LAST_WORD = re.compile(r"([A-Za-z]{1,24})[ -]\Z")
_BETWEEN = re.compile(r"[-_. ]")
_WEAK = re.compile(
    r"(?i)(?:(?:oauth_)?sig|(?:oauth_)?signature|x-amz-(?:signature|credential|security-token)|x-goog-"
    r"(?:signature|credential)|awsaccesskeyid"
    r"|googleaccessid|[a-z]{0,8}sess(?:ion)?_?"
    r"(?:id)?|sid|[a-z._-]{0,16}auth|key|.{0,24}sessid|dsn|pin)\Z"
)
"""Names whose value is a secret if it looks like one."""
_SIGNATURE = re.compile(r"(?i)x-(?:amz|goog)-signature\Z")
"""Parameter that makes an address a key to what it names, in hexadecimal digits."""


@lru_cache(maxsize=1)
def _table() -> dict[str, frozenset[str]]:
    table = load_cached("names", dict[str, str], _read, (Path(__file__).parent,))
    return {kind: frozenset(words.split()) for kind, words in table.items()}


def _read() -> dict[str, str]:
    return msgspec.toml.decode(Path(__file__).with_name("names.toml").read_bytes(), type=dict[str, str])


def words(kind: str) -> frozenset[str]:
    """Return one of the lists of names.toml."""
    return _table()[kind]


@lru_cache(maxsize=4096)
def secret(name: str) -> str:
    """Return the kind of a name's value: `strong`, `token`, `key`, `weak`, or "" for none."""
    if name.lower() == "pass":
        return "token"
    known = _table()
    words = [word.lower() for word in _WORDS.findall(name)]
    while len(words) > 1 and words[-1] in known["after"]:
        if words[-1] in ("file", "id"):
            return "key" if words[-2] == "secret" else _weak(name)
        words.pop()
    if not words:
        return ""
    if _SIGNATURE.match(name):
        return "key"
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    if last in known["no_secret"]:
        return ""
    joined = before + last if before + last in _BETWEEN.sub("", name.lower()) else ""  # not across the parts of `p4_w7`
    if not known["secret"].isdisjoint((last, joined)) or last.endswith(tuple(known["ends"])):
        return "" if before in known["passes"] else "strong"
    if last == "key" and before:
        return "strong" if before in known["keys"] else "" if before in known["no_key"] else "key"
    if last.endswith("key") and len(last) > 6 and last[:-3] not in known["no_key"]:
        return "key"
    if last == "secrets" or (before and last in known["opaque"]):
        return "key"
    if last in ("token", "tokens"):
        plural = last == "tokens" and before not in ("api", "access", "auth")
        return "" if plural or before in known["no_token"] else "token"
    if not known["named"].isdisjoint(words) and last not in known["about"]:
        return "key"
    return _weak(name)


def is_a_run_through(before: str, name: str) -> bool:
    """True for the name `pass` after a word for what is passed through: `in one backward pass: ...`."""
    if name.lower() != "pass":
        return False
    found = _LAST_WORD.search(before)
    return found is not None and found[1].lower() in _table()["passes"]


def _weak(name: str) -> str:
    return "weak" if _WEAK.match(name) else ""
