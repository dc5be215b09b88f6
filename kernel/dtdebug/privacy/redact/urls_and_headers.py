"""Finds secrets by their position: addresses, headers, cookies, `.netrc`, Docker's and npm's logins."""

from __future__ import annotations

import re

from dtdebug.privacy.redact.randomness import flat, is_made, is_opaque
from dtdebug.privacy.redact.secret_names import secret
from dtdebug.privacy.redact.value_end import is_harmless
from dtdebug_taxonomy.text.lazy_re import lazy_re

_SLASHES = r":\\?/\\?/"
_PASSWORD = lazy_re(rf"{_SLASHES}[^/\s:@\"'(]{{0,256}}+:(?P<s>[^/\s\"'<>]{{1,512}})@")
_SLASHED = lazy_re(
    rf"{_SLASHES}[^/\s:@\"']{{0,256}}+:(?P<s>[^\s\"'<>@]{{1,128}})@"
    rf"(?=[A-Za-z0-9.-]{{1,128}}[:/])"
)
_SCHEMELESS = lazy_re(r"(?<![\w.@:/-])[A-Za-z][\w.-]{0,63}:(?P<s>[^\s:@/\"'<>]{8,256}+)@(?=[A-Za-z\d][\w.-]{1,128})")
_USER = lazy_re(rf"https?{_SLASHES}(?P<s>[^/\s:@\"'<>]{{12,256}}+)@")
_PLAIN_USER = lazy_re(r"[a-z]{1,32}\Z|[a-z]{1,24}[._-][a-z]{1,24}\d{0,4}\Z")
_HEADER = lazy_re(
    r"(?i)authorization(?P<q>\\{0,3}[\"'])?\]?[ \t]{0,3}[:=,(][ \t]{0,5}(?:b?\\{0,3}[\"'])?"
    r"(?P<scheme>(?:basic|bearer|token|digest|negotiate|apikey|ntlm|aws4-hmac-sha256|key|bot)[ \t]{1,5}"
    r"(?:credential=)?)?"
    r"(?P<s>[^\s\"'\\]{4,4096}+)"
)
_PROOF = lazy_re(
    r"(?i)authorization\b[^\n]{0,600}?\b(?:response|signature)[ ]?=[ ]?\\{0,3}[\"']?(?P<s>[A-Za-z0-9+/=%._-]{16,512}+)"
)
"""Parameters of a header by which a client proves its key."""
_BEARER = lazy_re(r"(?i)\bbearer[ \t]{1,5}(?P<s>[A-Za-z0-9._~+/=-]{12,4096}+)")
_BASIC = lazy_re(r"\bBasic[ \t](?P<s>[A-Za-z0-9+/]{12,512}+={1,2}|[A-Za-z0-9+/]{16,512}+(?=[\"'\s]|$))")
_COOKIE = lazy_re(
    r"(?i)\bcookie(?:\\{0,3}[\"'])?[ \t]{0,3}[:=][ \t]{0,5}(?:b?\\{0,3}[\"'])?"
    r"(?P<s>[\w.-]{1,64}=[^\n\"'\\]{1,4096}+)"
)
_NO_PASSWORD = lazy_re(r"(?:(?i:pass|password)|x-oauth-basic|\$\{[^}]{1,64}\}|\$[A-Z_]{1,64}|\{[\w.]{1,64}\}|%s)\Z")
_VARIABLE = lazy_re(r"[$<{%\[]|EMPTY\b")
_NETRC = lazy_re(r"\blogin\s{1,8}\S{1,128}\s{1,8}password\s{1,8}(?P<s>\S{1,256})")
_PGPASS = lazy_re(
    r"(?m)^(?:[^\s:]{1,64}: )?(?:\*|[\w.-]{1,128}):(?:\*|\d{4,5}):(?:\*|[\w-]{1,63}):(?:\*|[\w-]{1,63})"
    r":(?P<s>[^\s:]{8,256})$"
)
"""Host, port, database, user, password: https://www.postgresql.org/docs/current/libpq-pgpass.html."""
_DOCKER = lazy_re(
    r"(?:\"_?auth\\{0,3}\"\s{0,5}:[\s']{0,5}\\{0,3}\"|'_?auth'\s{0,5}:\s{0,5}'"
    r"|_auth\s{0,3}=\s{0,3}\"?)(?P<s>[A-Za-z0-9+/=]{8,4096}+)"
)
_QUOTED = lazy_re(
    r"(?i)(?<![A-Za-z])(?:password|passwd|passphrase|passcode)[ \t]{1,3}"
    r"(?:(?:(?:for|of)\b[^.\n]{1,60}[ \t])?(?:is|was)[ \t]{1,3})?(?P<q>\\{0,3}[\"'])(?P<s>[^\s\"'\\]{4,256})(?P=q)"
)
"""Quoted password, as in `PASSWORD '...'` or `the password for user "x" is "..."`."""
_GIVEN = lazy_re(
    r"(?i)(?:auth|credentials?)[ \t]{0,3}=?[ \t]{0,3}\([ \t]{0,3}\\{0,3}[\"'][^\"'\\\n]{1,128}\\{0,3}[\"'][ \t]{0,3},"
    r"[ \t]{0,3}\\{0,3}[\"'](?P<s>[^\"'\\\n]{1,256})\\{0,3}[\"'][ \t]{0,3}[,)]"
)
"""User and password: `auth=("...", "...")`."""
_LOGS_IN = lazy_re(r"\blogin\((?:(?:[^()\n]{0,120}[ ,(])?(?:key|token)[ ]?=[ ]?)?[\"'](?P<s>[^\"'\s]{10,512})[\"']")
_ELEMENT = lazy_re(
    r"(?i)<(?:\w{0,24}(?:password|passwd|passphrase|passcode|pwd)|pass|"
    r"\w{0,24}secret|\w{0,24}token|api-?key)(?:[ \t][^<>\n]{1,64})?>(?P<s>[^<\s]{4,512})<"
)
_FILLED = lazy_re(r"(?i)<(?:\w{0,24}(?:password|secret|token|api-?key))>(?P<s>[^<\n]{10,512})<")
_RUN = lazy_re(r"[A-Za-z0-9+/_=-]{10,512}+")
_REFUSED = lazy_re(
    r"(?P<name>[A-Za-z_][\w.]{0,64})(?:\n|\\n)[ \t]{1,8}[^\n]{1,160}\[type=\w{1,64}, input_value='(?P<s>[^'\n]{4,4096})"
)
"""Rejected input as pydantic prints it."""
_ADDED = lazy_re(
    r"(?i)<add[ \t]{1,8}key=\\{0,3}[\"'][^\"'<>]{0,64}(?:password|secret|token)\\{0,3}[\"'][ \t]{1,24}"
    r"value=\\{0,3}[\"'](?P<s>[^\"'<>\\]{4,512})"
)
_CONDA = lazy_re(r"/t/(?P<s>[A-Za-z0-9-]{10,80})/")
_PASSED = lazy_re(r"(?i)\bidentified by[ \t]{1,3}[\"'](?P<s>[^\"'\n]{1,256})")

_ALTERED = lazy_re(
    r"(?i)\b(?:create|alter|grant)\b[^\n;]{1,200}?\bidentified[ ]by[ ]"
    r"(?!password|values|external|global)(?P<s>[^\s\"'\\;]{4,256})"
)


def spans(text: str) -> list[tuple[int, int]]:
    """Return the spans of secrets."""
    found: list[tuple[int, int]] = []
    whole, text = text, flat(text)
    lower = text.lower()

    def look(literal: str, pattern: re.Pattern[str]) -> None:
        if literal in lower:
            found.extend(m.span("s") for m in pattern.finditer(text) if not is_harmless(m["s"], text, m.start("s")))

    if "@" in text:
        found += (m.span("s") for m in _SCHEMELESS.finditer(text) if is_made(m["s"]))
    found += (m.span("s") for m in _PGPASS.finditer(text) if is_made(m["s"]))
    if "@" in text and ("//" in text or "\\/\\/" in text):
        found += (
            m.span("s") for p in (_PASSWORD, _SLASHED) for m in p.finditer(text) if not _NO_PASSWORD.match(m["s"])
        )
        found += (m.span("s") for m in _USER.finditer(text) if not _PLAIN_USER.match(m["s"]))
    if "authorization" in lower:
        found += (
            m.span("s")
            for m in _HEADER.finditer(text)
            if not _VARIABLE.match(m["s"]) and (m["scheme"] or _is_credential(m["s"]))
        )
        found += (m.span("s") for m in _PROOF.finditer(text))
    if "bearer" in lower:
        found += (m.span("s") for m in _BEARER.finditer(text) if _is_credential(m["s"]))
    look("basic ", _BASIC)
    look("cookie", _COOKIE)
    look("login", _NETRC)
    look("auth", _DOCKER)
    look("identified by", _PASSED)
    look("identified by", _ALTERED)
    look("pass", _QUOTED)
    if "(" in lower:  # two items: not in the flattened text
        found += (m.span("s") for m in _GIVEN.finditer(whole) if not is_harmless(m["s"], whole, m.start("s")))
    look(">", _ELEMENT)
    look("<add", _ADDED)
    if "</" in text:
        parts = (p for m in _FILLED.finditer(text) for p in _RUN.finditer(text, *m.span("s")))
        found += (p.span() for p in parts if is_made(p[0]))
    if "input_value='" in text:
        found += (m.span("s") for m in _REFUSED.finditer(text) if secret(m["name"]) in ("strong", "token", "key"))
    if "conda" in lower:
        found += (m.span("s") for m in _CONDA.finditer(text) if is_opaque(m["s"]))
    look("login(", _LOGS_IN)
    return found


def _is_credential(value: str) -> bool:
    """True for a credential without a scheme, False for a name from a program."""
    if value.rstrip(".,").isdigit():
        return False
    if value.rstrip(".,").isalpha():
        return is_opaque(value)
    return any(c.isdigit() for c in value) and not re.match(r"[A-Za-z_][\w.]{0,64}[(\[]", value)
