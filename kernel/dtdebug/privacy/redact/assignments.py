"""Finds values of names that mark secrets: `WANDB_API_KEY=...`, `"password": "..."`, `clientSecret: ...`."""

from __future__ import annotations

import re

from dtdebug.privacy.redact import nearby_values, value_end
from dtdebug.privacy.redact.randomness import is_hash
from dtdebug.privacy.redact.secret_names import is_a_run_through, secret
from dtdebug_taxonomy.text.lazy_re import lazy_re

_TRIGGERS = lazy_re(
    r"(?i)pass|pwd|token|secret|key|credential|auth|sig|session|cookie|crumb"
    r"|connectionstring|sid|pin|dsn|login|p[as]{1,3}w(?:o?r)?d|(?:api|pw)(?![a-z])"
)
_IN_NAME = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"
_LONGEST = 64
_REST = lazy_re(rf"[A-Za-z0-9_.-]{{0,{_LONGEST}}}")
_ASSIGNS = lazy_re(
    r"(?:\[\d{0,6}\](?=[ ]?=)|[ ][Ss]tring(?=[ ]=))?"
    r"\]?(?P<close>\\{0,3}[\"'])?\]?"
    r"(?P<sep>[ \t]{0,24}(?:=>|:{1,3}=|[.+?]=(?!=)|[=!]={1,2}(?=[ \t]{0,3}[brfu]{0,2}\\{0,3}[\"'])"
    r"|=(?!=)"
    r"|:[ \t]{0,3}[A-Za-z][\w.| \[\]]{0,40}=[ \t]{0,3}(?=[brfu]{0,2}[\"'])"
    r"|:(?![:/]|[a-z]{2,12}:`))[ \t]{0,24}|\\{0,3}[\"'][ ](?:to|->)[ ](?=\\{0,3}[\"'])"
    r"|(?:\\{0,3}[\"'][ \t]{0,3})?,[ \t]{0,3}(?=\\{0,3}[\"']))"
    r"(?:(?:!!(?:str|binary)|&[\w-]{1,32})[ ]{1,4}){0,2}(?P<kind>[brfu]{1,2}(?=[\"']))?"
    r"(?P<quote>\"{3}|'{3}|\\{0,3}[\"'`])?"
)
"""Separator between a name and its value. A bare comma only counts if both are quoted, as items of a list or
tuple, or after a constant: `setopt(CURLOPT_PASSWORD, "...")`."""
_SETS = lazy_re(r"(?i)(?:setdefault|(?:set|put|get)_?env|environ\.get)\([ \t]{0,3}\\{0,3}[\"']\Z")
_PAIR = lazy_re(r"[(\[][ \t]{0,3}\\{0,3}[\"']\Z")
"""Text before a quoted name that a comma separates from its value."""
_ITEMS = lazy_re(r"\[(?P<s>\s{0,64}\\{0,3}[\"'][^\[\]]{4,4096})\]")
_LISTED = lazy_re(r"\n(?P<s>(?:[ ]{0,32}-[ ](?![\w-]+:\s)[^\s]{4,256}[ ]{0,4}(?:\n|\Z)){1,32})")
"""Several values, in one line or as a YAML list."""
_FALLS_BACK = lazy_re(
    r"(?:[^\n\"']{0,100}(?i:get\w{0,12}|env|pop)\([ ]?[\"'][\w.-]{1,64}[\"'][ ]?,"
    r"|[^\n]{1,160}?(?:[ ]or|\|\||\?\?|\?:|\?[^\n:]{1,80}:))[ ]?"
    r"(?P<q>[\"'])(?P<s>[^\"'\s]{4,256})(?P=q)"
)
"""Default of an unset variable: `getenv("...", "...")`, `get("...") or "..."`, `env.TOKEN || "..."`."""
_NUMBERED = lazy_re(
    r"(?P<q>[\"'])[ ]?:[ ]?(?P<n>\d{1,7})(?:\s{0,40},\s{0,40}(?P=q)[^\"'\n]{1,64}(?P=q)[ ]?:[ ]?(?P<next>\d{1,7}))?"
)
_PIECE = lazy_re(r"[\"'](?:<[^<>\"'\s]{1,32}>|\[[A-Z]{2,8}\d{0,3}\]|##[^\"'\s]{1,32})[\"'][ ]?:[ ]?\d{1,7}(?!\d)")
"""Special token of a vocabulary, or a word continuation, with its number."""
_NUMBER_BEFORE = lazy_re(r"(?P<n>\d{1,7})\s{0,40},\s{0,40}[\"'][^\"'\n]{0,64}\Z")
_AROUND = 240
"""Maximum distance in characters between entries of a vocabulary."""
_LOGGED = lazy_re(r"(?:\b[A-Z]{4,8}|[]|>]):?\Z")
"""End of what a logger prints before a message: a level, a bracket, a bar."""
_COMPARES = ("==", "!=", "===", "!==")
_COMPARED = lazy_re(r"\\{0,3}(?P<q>[\"'])(?P<s>[^\"'\\\n]{4,256})\\{0,3}(?P=q)[ \t]{0,3}[=!]={1,2}[ \t]{0,3}\Z")
"""Value before the name, as in `"..." == password`."""
_TOLD = lazy_re(
    r"(?i)(?<![a-z])(?:name|key)(?:\\{0,3}[\"'])?[ \t]{0,3}[:=>][ \t]{0,5}(?:\\{0,3}[\"'])?(?P<name>[a-z][\w.-]{1,64})"
    r"(?:\\{0,3}[\"']|</(?:name|key)>)?(?:\s|,|\\[nrt]){1,64}(?:[\[(]?\w{1,16}[\])]?:?[ \t]{1,16})?"
    r"[\"'<\\]{0,4}value(?:\\{0,3}[\"'])?[ \t]{0,3}[:=>]"
    r"[ \t]{0,5}(?:\\{0,3}[\"'])?(?P<s>[^\s\"'<\\]{4,4096})"
)
"""`- name: DB_PASSWORD` with `value: ...` on the next line: environment variables in Kubernetes, JSON, XML."""


def spans(text: str) -> list[tuple[int, int]]:
    """Return the spans of secret values."""
    found = [m.span("s") for m in _TOLD.finditer(text) if _is_told(m)] if "alue" in text else []
    behind = 0
    for trigger in _TRIGGERS.finditer(text):
        if trigger.start() < behind:
            continue
        before = text[max(behind, trigger.start() - _LONGEST) : trigger.start()]
        begin = trigger.start() - (len(before) - len(before.rstrip(_IN_NAME)))
        behind = trigger.end() + len(_REST.findall(text, trigger.end(), trigger.end() + _LONGEST)[0])
        name = text[begin:behind].rstrip(".-")
        end = begin + len(name)
        if _is_in_a_vocabulary(text, begin, end):
            continue
        span = (
            value(text, begin, end, name) or _compared_value(text, begin, name) or nearby_values.value(text, begin, end)
        )
        if span is not None:
            found.append(span)
            behind = max(behind, span[1])
    return found


def value(text: str, begin: int, end: int, name: str) -> tuple[int, int] | None:
    """Return the span of the name's value if it is a secret."""
    kind = secret(name.lstrip("-"))
    if not kind or is_a_run_through(text[max(0, begin - _LONGEST) : begin], name):
        return None
    assigns = _ASSIGNS.match(text, end)
    if assigns is None:
        return None
    if "," in assigns["sep"] and not name.startswith("--"):
        kind = _item_kind(
            text[max(0, begin - 40) : begin], kind, "" if assigns["close"] or assigns["sep"][0] != "," else name
        )
    if not kind or (assigns["sep"].strip() in _COMPARES and kind != "strong"):
        return None
    if assigns[0][0] == "]" and not assigns["close"] and assigns["sep"] != "=" and text[begin - 1 : begin] != ":":
        return None  # the index of a variable
    quote = assigns["quote"] or ""
    start = assigns.end()
    if kind == "strong" and not quote and (items := _ITEMS.match(text, start) or _LISTED.match(text, start)):
        return items.span("s")
    stop = value_end.closing(text, start, quote) if quote else value_end.open_end(text, start)
    said = text[start:stop]
    if value_end.is_harmless(said, text, start) or ("{" in said and "f" in (assigns["kind"] or "")):
        return None
    if quote:
        plain = " " not in said or value_end.is_number(said) or assigns["close"] or "=" in assigns["sep"]
        certain = kind == "strong" and (plain or _begins_line(text, begin) or _is_logged(text, begin, said))
    elif value_end.is_code(text, start, said, name, assigns["sep"]):
        found = _FALLS_BACK.match(text, start, start + 300) if kind in ("strong", "token") else None
        return (
            found.span("s")
            if found and nearby_values.is_a_secret(found["s"], chosen=kind == "strong" or len(found["s"]) >= 20)
            else None
        )
    elif kind == "strong":
        certain = not (":" in assigns["sep"] and value_end.is_prose(text, start, stop))
        return (start, stop) if certain else None
    else:
        written = assigns["sep"] == "="  # as in a query, shell or argument, but not in a table or arrow
        certain = kind == "token" and "=" in assigns["sep"] and value_end.is_made_up(said, letters=written)
        if kind == "token" and "=" not in assigns["sep"] and value_end.is_hyphenated_prose(text, start, stop):
            return None
    signed = kind == "weak" and text[begin - 1 : begin] in ("?", "&") and "sig" in name.lower() and is_hash(said)
    return (start, stop) if certain or signed or value_end.credible(said, kind) else None


def _is_told(pair: re.Match[str]) -> bool:
    """True if a name/value pair holds a secret."""
    kind = secret(pair["name"])
    if not kind or value_end.is_harmless(pair["s"], pair.string, pair.start("s")):
        return False
    return kind == "strong" or value_end.credible(pair["s"], kind)


def _item_kind(before: str, kind: str, constant: str) -> str:
    """Return the kind of an item after a name; it is definitely the name's value only if the call sets something."""
    if constant:
        return kind if kind == "strong" and constant.isupper() and "_" in constant else ""
    if kind != "weak" and _SETS.search(before):
        return "strong"
    return "token" if kind == "strong" and _PAIR.search(before) else "key"


def _is_in_a_vocabulary(text: str, begin: int, end: int) -> bool:
    """True for an entry of a tokenizer's vocabulary: it or a neighbour looks like one, or numbers are consecutive."""
    if text[begin - 1 : begin] in value_end.PIECES[:2] or text[begin - 1 : begin + 5] in value_end.PIECES[2:]:
        return True
    here = _NUMBERED.match(text, end)
    if here is None:
        return False
    before = _NUMBER_BEFORE.search(text, max(0, begin - 160), begin)
    number = int(here["n"])
    return bool(
        (before and int(before["n"]) == number - 1)
        or (here["next"] and int(here["next"]) == number + 1)
        or _PIECE.search(text, max(0, begin - _AROUND), end + _AROUND)
    )


def _begins_line(text: str, begin: int) -> bool:
    """True if the name begins its line, as in YAML; elsewhere a colon and words may be prose."""
    before = text[max(0, begin - 64) : begin]
    return before.rstrip(" \t-")[-1:] in ("", "\n") and (begin < 64 or "\n" in before)


def _is_logged(text: str, begin: int, said: str) -> bool:
    """True if the name begins the message of a logger, and the value is more than words."""
    bare = text[max(0, begin - 64) : begin].rstrip(" \t-")
    return any(map(str.isdigit, said)) and _LOGGED.search(bare) is not None


def _compared_value(text: str, begin: int, name: str) -> tuple[int, int] | None:
    """Return the span of the value that the name of a secret is compared with, to the left of it."""
    if text[max(0, begin - 3) : begin].rstrip(" \t")[-1:] != "=" or secret(name) != "strong":
        return None
    found = _COMPARED.search(text, max(0, begin - 300), begin)
    return found.span("s") if found and not value_end.is_harmless(found["s"], text, found.start("s")) else None
