"""Delimits the value after a name, and separates secrets from words, numbers, paths and expressions."""

from __future__ import annotations

from dtdebug.privacy.redact.randomness import is_hash, is_opaque
from dtdebug.privacy.redact.secret_names import secret
from dtdebug_taxonomy.text.lazy_re import lazy_re

PIECES = ("\u0120", "\u2581", "\\u0120", "\\u2581")
"""Beginnings of vocabulary entries that follow a space."""
_VALUE = lazy_re(r"[^\s\"'`]{1,4096}+")
_LOOSE = lazy_re(r"\S{1,4096}+")
_NEXT = lazy_re(r"(?:[;&,]|\\[nrt])[ ]?(?=[A-Za-z][\w .-]{0,40}[=:])")
"""Beginning of another assignment in text without spaces."""
_BROKEN = lazy_re(r"(?:\\[nrt]){1,8}(?![A-Za-z0-9\\]).*")
"""End of a line within a string, and the text after it."""
_HARMLESS = lazy_re(
    r"(?i)(?:[+-]?\d{0,4}[.,]\d{1,9}"
    r"(?:e[+-]?\d{1,3})?|\d{1,3}|true|false|none|null|nil|yes|no|on|off|str|int|bytes|float|bool|empty|dummy|inherit|await|new|key|token|api[_-]?key|(?:sk-)?placeholder|redacted|password|#[\da-f]{3,8}|![A-Z][a-z]{1,16}|\*{2,64}"
    r"|(?:[\w-]{0,16}[_-])?(?:your|replace|placeholder)[ _-][\w -]{1,64}|[\w-]{0,16}x{3,64}|(?:sk-)?\.{3})\Z"
)
_NUMBER = lazy_re(r"[\[(]{0,4}[\d.,e+-]{1,64}[\])]{0,4}\Z")
_PLACEHOLDER = lazy_re(
    r"(?:\${1,2}\{{0,2}[ ]?[A-Za-z_(]|\$\d\b|\.\*|\[\^|\{[A-Za-z_][\w.]{0,64}\(|\$\("
    r"|%\(|%[sdr]\b|<%|!(?:Ref|Sub|GetAtt|ImportValue|vault)\b"
    r"|\{{1,2}[ ]{0,2}[A-Za-z_][\w.]{0,64}[ ]{0,2}\}"
    r"|\{(?:[A-Za-z_][\w.]{0,64}(?:(?:\[[\w\"']{0,32}\]){1,4}|\()?|\d{0,2})[})'\"]"
    r"|\{[A-Za-z_][\w.]{0,64}[!:]|<[A-Za-z_][\w .-]{0,64}>|\*{3}|\.{3}"
    r"|\.[a-z_]{1,32}\(|x{4,64}\b|\[[A-Z]{1,20}\])"
)
_CODE = lazy_re(
    r"\(?[A-Za-z_]\w{0,64}(?:(?:\.|::)[A-Za-z_]\w{0,64}){0,8}!?[\[(]|(?:[A-Za-z_]\w{0,64}::){1,8}[A-Za-z_]|[A-Z][a-z]{1,24}<[A-Z&]|"
    r"[{(\[][ ]?[A-Za-z_]\w{0,64}[ ]?:|[{(\[]{1,3}[A-Za-z_][\w.]{0,64}(?:[(\[]|\Z)"
    r"|(?:self|args|cfg|config|os|opts?|settings|kwargs)\."
)
_OPENS = lazy_re(r".*[\[(]\Z")
_CLOSES = lazy_re(r"[^\n]{0,2000}?[\])]")
"""A call or index closes in its line, or its line ends at the opening bracket; otherwise it is part of a password."""
_PATH = lazy_re(r"(?:file://|~|\.{1,2}|[A-Z]:)?[/\\][A-Za-z_.][\w.@-]{1,64}[/\\]")
_VARIABLE = lazy_re(r"[a-z]{0,24}(?:_[a-z\d]{1,24}){1,6}\Z|[A-Z]{1,24}(?:_[A-Z\d]{1,24}){1,6}\Z")
_HEADER = lazy_re(r"[A-Za-z]{1,24}(?:-[A-Za-z\d]{1,24}){1,6}\Z")
_HOST = lazy_re(r"[a-z][a-z\d-]{0,62}(?:\.[a-z][a-z\d-]{0,62}){1,6}(?:/[\w.-]{1,64}){0,4}\Z")
_ATTRIBUTE = lazy_re(r"[A-Za-z_]\w{0,64}(?:\.[A-Za-z_]\w{0,64}){1,8}\Z")
_WRITTEN = lazy_re(
    r"<\|[^|]{1,64}\|>\Z|[@_%#<\[{|]{1,3}[A-Za-z_/ -]{1,64}[@_%#>\]}|]{1,3}\Z|<?\|?[A-Za-z_]{1,64}\|?>?[.,:!?]?\Z"
    r"|[A-Za-z_]\w{0,64}(?:\.[A-Za-z_]\w{0,64}){1,8}\Z"
)
_PLAIN = lazy_re(r"[A-Z]{2,12}\Z|[a-z]{1,32}[.,;:!?]?\Z|[A-Z][a-z]{1,32}[.,;:!?]?\Z")
_HYPHENATED = lazy_re(r"[A-Z]?[a-z]{1,16}(?:-[a-z]{2,16}){1,3}\Z")
_COUNTS = lazy_re(r"[ ][%*/+-][ ][\w(]")
_WORD_FOLLOWS = lazy_re(r"[ \t]{1,3}[A-Za-z(*]")


def is_harmless(said: str, text: str, start: int) -> bool:
    """True for nothing, a number, a language's word, a path, the name of another secret, or a placeholder."""
    bare = said.rstrip("):,;]}")
    return (
        not any(c.isalnum() and c.isascii() for c in said)
        or said.startswith(PIECES)
        or _PLACEHOLDER.match(text, start) is not None
        or _HARMLESS.match(bare) is not None
        or (_PATH.match(bare) is not None and not is_opaque(bare))
        or ((_VARIABLE.match(bare) or _HEADER.match(bare)) is not None and secret(bare) != "" and not is_opaque(bare))
    )


def is_code(text: str, start: int, said: str, name: str, sep: str) -> bool:
    """True if an unquoted value is an expression of a program."""
    bare = said.rstrip(",):")
    if "(" not in bare:
        bare = bare.partition(")")[0]  # `get(url, token=token).size`
    joined, called = bare.replace("_", "").lower(), name.replace("_", "").lower()
    code = _CODE.match(said)
    if code and not _OPENS.match(code[0]) and code[0][0] not in "[({":
        return True
    if code and (said.endswith(("(", "[")) or _CLOSES.match(text, start + code.end())):
        return True
    if joined in (called, called.rpartition(".")[2], name.rpartition("_")[2].lower()):
        return True  # `token=token`, `access_token: AccessToken`
    if _ATTRIBUTE.match(bare) and secret(bare.rpartition(".")[2]):
        return True
    if bare.isidentifier() and _COUNTS.match(text, start + len(said)):
        return True  # `pw = index % width`
    return sep == " = " and not is_opaque(bare) and (_VARIABLE.match(bare) or _ATTRIBUTE.match(bare)) is not None


def is_number(said: str) -> bool:
    """True for a number, or the beginning of a list of numbers."""
    return _NUMBER.match(said) is not None


def is_prose(text: str, start: int, stop: int) -> bool:
    """True for a word followed by another."""
    return _PLAIN.match(text[start:stop]) is not None and _WORD_FOLLOWS.match(text, stop) is not None


def is_hyphenated_prose(text: str, start: int, stop: int) -> bool:
    """True for a word of several parts followed by another word: `re-entrant checkpointing`."""
    return _HYPHENATED.match(text[start:stop]) is not None and _WORD_FOLLOWS.match(text, stop) is not None


def is_made_up(said: str, *, letters: bool) -> bool:
    """True for letters with digits, or for letters alone if `letters`; numbers don't count."""
    return len(said) >= 6 and said.isalnum() and not said.isdigit() and (letters or any(map(str.isdigit, said)))


def credible(said: str, kind: str) -> bool:
    """True if the value isn't a word, a number or an identifier of a program."""
    if kind == "weak":
        return len(said) >= 16 and is_opaque(said)
    if kind == "key":
        return is_opaque(said) or is_hash(said)
    if " " in said or len(said) < 6 or is_number(said):
        return False
    if _WRITTEN.match(said) or _HOST.match(said):
        return is_opaque(said) or any(map(is_hash, said.split(".")))
    return any(c.isalnum() for c in said)


def closing(text: str, start: int, quote: str) -> int:
    """Return the end of a quoted value: at the same quotes, or with the line."""
    line = text.find("\n", start, start + 8192)
    line = line if line >= 0 else min(len(text), start + 8192)
    place = start
    while (place := text.find(quote, place, line)) >= 0:
        if len(quote) > 1 or text[place - 1] != "\\":
            return place
        place += 1
    return line


def open_end(text: str, start: int) -> int:
    """Return the end of an unquoted value; a quote within it belongs to it if something follows."""
    loose = _LOOSE.match(text, start)
    if loose is None:
        return start
    said = loose.group()
    if following := _NEXT.search(said):
        said = said[: following.start()]
    plain = _VALUE.match(said)
    inside = said[plain.end() :] if plain else said
    if plain and inside and not any(c.isalnum() for c in inside):
        said = plain.group()
    said = _BROKEN.sub("", said)
    return start + len(said.rstrip(",;)}]>\"'`" if said[-1:] != "=" else ""))
