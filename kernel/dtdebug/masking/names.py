"""Values of names that say what they are: `WANDB_API_KEY=...`, `"password": "..."`, `clientSecret: ...`.

A name is read word by word: `access_token` is a secret, `pad_token`, `token_type_ids` and `tokenizer` are not.
"""

from __future__ import annotations

import re
from functools import lru_cache

from dtdebug.masking.noise import is_hash, is_opaque

_TRIGGERS = re.compile(
    r"(?i)pass|pwd|token|secret|key|credential|auth|sig|session|cookie"
    r"|connectionstring|sid|pin|dsn|login"
)
_IN_NAME = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"
_LONGEST = 64
_REST = re.compile(rf"[A-Za-z0-9_.-]{{0,{_LONGEST}}}")
_WORDS = re.compile(r"[A-Z]{2,40}(?![a-z])|[A-Z]?[a-z]{1,40}|[A-Z]")
_ASSIGNS = re.compile(
    r"\]?(?P<close>\\{0,3}[\"'])?\]?(?P<sep>[ \t]{0,3}(?:=>|:=|[=!]={1,2}(?=[ \t]{0,3}[brfu]{0,2}\\{0,3}[\"'])|=(?!=)|:"
    r"(?![:/]))[ \t]{0,3}|\\{0,3}[\"'],[ \t]{0,3}(?=\\{0,3}[\"']))"
    r"(?P<kind>[brfu]{1,2}(?=[\"']))?(?P<quote>\\{0,3}[\"'`])?"
)
"""From a name to its value. With a comma alone only where both are quoted: items of a list or of a tuple."""
_COMPARES = ("==", "!=", "===", "!==")
_COMPARED = re.compile(r"\\{0,3}(?P<q>[\"'])(?P<s>[^\"'\\\n]{4,256})\\{0,3}(?P=q)[ \t]{0,3}[=!]={1,2}[ \t]{0,3}\Z")
"""`"..." == password`: the value stands before the name."""
_STRONG = frozenset(
    [
        "password",
        "passwd",
        "pwd",
        "passphrase",
        "passwort",
        "pass",
        "passcode",
        "credential",
        "credentials",
        "userpassword",
        "secret",
        "authtoken",
        "accesstoken",
        "refreshtoken",
        "identitytoken",
        "registrytoken",
        "bearertoken",
        "apitoken",
        "usertoken",
        "bottoken",
        "apikey",
        "accesskey",
        "secretkey",
        "privatekey",
        "authkey",
        "clientsecret",
        "pgpassword",
        "mysqlpwd",
        "pw",
        "userpass",
        "csrftoken",
        "xsrftoken",
    ]
)
"""Last words of names whose value is a secret whatever it looks like; `token` and keys of a kind come below."""
_KEYS = frozenset(
    ["api", "access", "account", "secret", "private", "auth", "signing", "encryption", "jwt", "hmac", "ssh"]
)
"""Words before `key` that make it a secret whatever it looks like."""
_NO_KEY = frozenset(
    """
    attention batch cache checkpoint column config context cross data dataset dedup dict dtype embed embedding
    expert feature field file foreign group hash head hidden idempotency image index input item job label layer
    lookup loss map mask merge meta metric model module monitor name node object optimizer output padding param
    parameter partition past primary prompt public q query rank rdzv record rng row run sample sort state step store
    table target tensor text unique value v video weight window
    """.split()  # noqa: SIM905 - as words, not a hundred lines
)
"""Words before `key` that speak of data; any other key is a secret if it looks like one."""
_NO_TOKEN = frozenset(
    [
        "pad",
        "eos",
        "bos",
        "unk",
        "mask",
        "sep",
        "cls",
        "special",
        "next",
        "last",
        "first",
        "end",
        "start",
        "stop",
        "image",
        "video",
        "audio",
        "prompt",
        "new",
        "max",
        "min",
        "num",
        "n",
        "per",
        "total",
        "each",
        "one",
        "by",
        "decoder",
        "encoder",
        "begin",
        "text",
        "current",
        "prev",
        "previous",
        "sampled",
        "bad",
        "forced",
        "suppress",
        "image",
        "vision",
        "think",
        "thinking",
        "tool",
        "draft",
        "unknown",
        "input",
        "output",
        "target",
        "word",
        "sub",
        "expected",
        "unexpected",
        "single",
        "id",
        "type",
        "class",
    ]
)
"""Words before `token` that speak of a text."""
_PASSES = ("pre", "post", "custom", "graph", "fusion", "compiler", "optimizer", "lowering", "backwards", "inductor")
"""Words before `pass` that speak of a compiler."""
_AFTER = frozenset(
    ["value", "string", "text", "base", "hash", "plain", "raw", "b", "old", "new", "file", "id", "pair", "header"]
)
"""Words that may follow the one that counts."""
_NO_SECRET_AFTER = frozenset(["file", "id"])
_NAMED = frozenset(["password", "passwd", "passphrase"])
_ABOUT = frozenset(
    ["hash", "digest", "file", "id", "path", "url", "uri", "name", "manager", "store", "policy", "field"]
)
"""A password, unless the last word says that it is about one: `db_password_prod`, not `password_hash`."""
_WEAK = re.compile(
    r"(?i)(?:sig|signature|x-amz-(?:signature|credential|security-token)|x-goog-"
    r"(?:signature|credential)|awsaccesskeyid"
    r"|googleaccessid|[a-z]{0,8}sess(?:ion)?_?"
    r"(?:id)?|sid|[a-z._-]{0,16}auth|key|.{0,24}sessid|dsn|pin)\Z"
)
"""Names whose value is a secret if it looks like one."""
_VALUE = re.compile(r"[^\s\"'`]{1,4096}+")
_LOOSE = re.compile(r"\S{1,4096}+")
_NEXT = re.compile(r"(?:[;&,]|\\[nrt])[ ]?(?=[A-Za-z][\w .-]{0,40}[=:])")
"""Where another assignment begins in what has no space."""
_BROKEN = re.compile(r"(?:\\[nrt]){1,8}\Z")
"""The end of a line within a string."""
_HARMLESS = re.compile(
    r"(?i)(?:[+-]?\d{0,4}[.,]\d{1,9}"
    r"(?:e[+-]?\d{1,3})?|\d{1,3}|true|false|none|null|nil|yes|no|on|off|str|int|bytes|float|bool|empty|dummy|inherit|![A-Z][a-z]{1,16}|\*{2,64}"
    r"|(?:your|replace)[ _-][\w -]{1,64}|[\w-]{0,16}x{3,64}|(?:sk-)?\.{3})\Z"
)
_NUMBER = re.compile(r"[\[(]{0,4}[\d.,e+-]{1,64}[\])]{0,4}\Z")
_PLACEHOLDER = re.compile(
    r"(?:\$\{{0,2}[ ]?[A-Za-z_(]|\$\(|%\(|%[sdr]\b"
    r"|\{(?:[A-Za-z_][\w.]{0,64}(?:(?:\[[\w\"']{0,32}\]){1,4}|\()?|\d{0,2})[})'\"]"
    r"|<[A-Za-z_][\w .-]{0,64}>|\*{3}|\.{3}"
    r"|x{4,64}\b|\[[A-Z]{1,20}\])"
)
_CODE = re.compile(
    r"[A-Za-z_]\w{0,64}(?:\.[A-Za-z_]\w{0,64}){0,8}[\[(]|"
    r"[{(\[][ ]?[A-Za-z_]\w{0,64}[ ]?:|(?:self|args|cfg|config|os|opts?|settings|kwargs)\."
)
_PATH = re.compile(r"(?:~|\.{1,2}|[A-Z]:)?[/\\][A-Za-z_.][\w.@-]{1,64}[/\\]")
_VARIABLE = re.compile(r"[a-z]{0,24}(?:_[a-z\d]{1,24}){1,6}\Z|[A-Z]{1,24}(?:_[A-Z\d]{1,24}){1,6}\Z")
_ATTRIBUTE = re.compile(r"[A-Za-z_]\w{0,64}(?:\.[A-Za-z_]\w{0,64}){1,8}\Z")
_WRITTEN = re.compile(r"<?\|?[A-Za-z_]{1,64}\|?>?[.,!?]?\Z|[A-Za-z_]\w{0,64}(?:\.[A-Za-z_]\w{0,64}){1,8}\Z")
_PLAIN = re.compile(r"[a-z]{1,32}[.,;:!?]?\Z|[A-Z][a-z]{1,32}[.,;:!?]?\Z")
_WORD_FOLLOWS = re.compile(r"[ \t]{1,3}[A-Za-z(*]")


def spans(text: str) -> list[tuple[int, int]]:
    """Where values of secrets stand."""
    found, behind = [], 0
    for trigger in _TRIGGERS.finditer(text):
        if trigger.start() < behind:
            continue
        before = text[max(behind, trigger.start() - _LONGEST) : trigger.start()]
        begin = trigger.start() - (len(before) - len(before.rstrip(_IN_NAME)))
        end = trigger.end() + len(_REST.findall(text, trigger.end(), trigger.end() + _LONGEST)[0])
        behind = end
        name = text[begin:end].rstrip(".-")
        span = value(text, begin, begin + len(name), name) or _compared(text, begin, name)
        if span is not None:
            found.append(span)
            behind = max(behind, span[1])
    return found


def value(text: str, begin: int, end: int, name: str) -> tuple[int, int] | None:
    """Where the value of that name stands, if it is a secret."""
    kind = secret(name.lstrip("-"))
    if not kind:
        return None
    assigns = _ASSIGNS.match(text, end)
    if assigns is None or ("," in assigns["sep"] and not name.startswith("--")):
        return None
    if assigns["sep"].strip() in _COMPARES and kind != "strong":
        return None
    if assigns[0][0] == "]" and not assigns["close"] and assigns["sep"] != "=":
        return None  # the index of a variable
    quote = assigns["quote"] or ""
    start = assigns.end()
    stop = _closing(text, start, quote) if quote else _end(text, start)
    said = text[start:stop]
    if _harmless(said, text, start) or ("{" in said and "f" in (assigns["kind"] or "")):
        return None
    if quote:
        plain = " " not in said or _NUMBER.match(said) or assigns["close"] or "=" in assigns["sep"]
        if kind == "strong" and (plain or _begins_line(text, begin)):
            return start, stop
        return (start, stop) if _credible(said, kind) else None
    if _code(said, name, assigns["sep"]):
        return None
    if kind == "strong":
        prose = ":" in assigns["sep"] and _PLAIN.match(said) and _WORD_FOLLOWS.match(text, stop)
        return None if prose else (start, stop)
    if kind == "token" and "=" in assigns["sep"] and len(said) >= 6 and said.isalnum() and not said.isdigit():
        return start, stop
    return (start, stop) if _credible(said, kind) else None


def _begins_line(text: str, begin: int) -> bool:
    """As in YAML: else a colon and words may be prose."""
    before = text[max(0, begin - 64) : begin]
    return before.rstrip(" \t-")[-1:] in ("", "\n") and (begin < 64 or "\n" in before)


def _compared(text: str, begin: int, name: str) -> tuple[int, int] | None:
    """Where the value stands that a name of a secret is compared with, in front of it."""
    if text[max(0, begin - 3) : begin].rstrip(" \t")[-1:] != "=" or secret(name) != "strong":
        return None
    found = _COMPARED.search(text, max(0, begin - 300), begin)
    return found.span("s") if found and not _harmless(found["s"], text, found.start("s")) else None


def _harmless(said: str, text: str, start: int) -> bool:
    """Nothing, a number, a word of a language, a path, the name of another secret or a place for one."""
    bare = said.rstrip("):,;]}")
    return (
        not any(map(str.isalnum, said))
        or _PLACEHOLDER.match(text, start) is not None
        or _HARMLESS.match(bare) is not None
        or (_PATH.match(bare) is not None and not is_opaque(bare))
        or (_VARIABLE.match(bare) is not None and secret(bare) != "")
    )


def _code(said: str, name: str, sep: str) -> bool:
    """What stands there without quotes is an expression of a program."""
    bare = said.rstrip(",):")
    if _CODE.match(said) or bare in (name, name.rpartition(".")[2], name.rpartition("_")[2]):
        return True
    if _ATTRIBUTE.match(bare) and secret(bare.rpartition(".")[2]):
        return True
    return sep == " = " and not is_opaque(bare) and (_VARIABLE.match(bare) or _ATTRIBUTE.match(bare)) is not None


def _credible(said: str, kind: str) -> bool:
    """A value that is no word, no number and no identifier of a program."""
    if kind == "weak":
        return len(said) >= 16 and is_opaque(said)
    if kind == "key":
        return is_opaque(said) or is_hash(said)
    if " " in said or len(said) < 6 or _NUMBER.match(said):
        return False
    words = _WRITTEN.match(said)
    return is_opaque(said) if words else any(c.isalnum() for c in said)


def _closing(text: str, start: int, quote: str) -> int:
    """Where a quoted value ends: at the same quotes, or with the line."""
    line = text.find("\n", start, start + 8192)
    line = line if line >= 0 else min(len(text), start + 8192)
    place = start
    while (place := text.find(quote, place, line)) >= 0:
        if len(quote) > 1 or text[place - 1] != "\\":
            return place
        place += 1
    return line


def _end(text: str, start: int) -> int:
    """Where a value without quotes ends; a quote inside belongs to it where something follows."""
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


@lru_cache(maxsize=4096)
def secret(name: str) -> str:
    """Of what kind a name's value is: `strong`, `token`, `key`, `weak`, or nothing."""
    words = [word.lower() for word in _WORDS.findall(name)]
    while len(words) > 1 and words[-1] in _AFTER:
        if words[-1] in _NO_SECRET_AFTER and words[-2] != "secret":
            return "weak" if _WEAK.match(name) else ""
        words.pop()
    if not words:
        return ""
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    joined = before + last
    if name.lower() == "pass":
        return "token"
    if last in _STRONG or joined in _STRONG or last.endswith(("password", "passwd", "passphrase")):
        return (
            "strong"
            if before not in ("forward", "backward", "first", "second", "multi", "by", "single", *_PASSES)
            else ""
        )
    if last == "key" and before:
        return "strong" if before in _KEYS else "" if before in _NO_KEY else "key"
    if last == "secrets":
        return "key"
    if last == "login" and len(words) > 1:
        return "key"
    if last in ("token", "tokens"):
        plural = last == "tokens" and before not in ("api", "access", "auth")
        return "" if plural or before in _NO_TOKEN else "token"
    if joined in ("connectionstring", "sessiontoken"):
        return "strong"
    if not _NAMED.isdisjoint(words) and last not in _ABOUT:
        return "key"
    return "weak" if _WEAK.match(name) else ""
