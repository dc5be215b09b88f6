"""Finds secrets in command lines: `--password X`, `-u user:secret`, `mysql -pX`, `wandb login X`."""

from __future__ import annotations

from collections.abc import Sequence

from dtdebug.privacy.redact.nearby_values import is_a_secret
from dtdebug.privacy.redact.randomness import flat, is_hash, is_opaque
from dtdebug.privacy.redact.secret_names import secret, words
from dtdebug.privacy.redact.value_end import is_harmless
from dtdebug_taxonomy.text.lazy_re import lazy_re

MASK = "***"
_CREDENTIALS = lazy_re(r"(?<![\w-])--(?:src-|dest-)?creds[ =][\"']?[\w.@+-]{1,99}:(?P<s>[^\s\"':/]{1,512})")
_GLUED = ("mysql", "mysqldump", "mysqladmin", "mariadb", "sshpass", "7z", "unzip", "zip")
"""Programs with a password directly after `-p` or `-P`, without a space."""
_SPACED = {"docker": "-p", "podman": "-p", "sshpass": "-p", "redis-cli": "-a", "ldapsearch": "-w"}
_LOGIN = lazy_re(
    r"\b(?:wandb|comet|neptune|modal|hf auth|huggingface-cli|ngc|clearml|netlify|kaggle|dvc)\s{1,5}login"
    r"(?:\s{1,5}--?(?:relogin|cloud|verify|anonymously)\b){0,3}\s{1,5}(?P<s>(?![-\[<$])[^\s\"']{8,512})"
)
_FLAG = lazy_re(
    r"(?<![^\s\"'=(\[,])--?(?P<name>[A-Za-z][\w.-]{1,64}+)[ \t]{1,5}(?P<q>[\"'])?(?P<s>"
    r"(?!-)[^\s\"']{1,1024}+)"
)
_USER = lazy_re(
    r"\b(?:curl|wget|https?)\b(?:[^\n]|\\\n){0,400}?(?<![\w-])(?:-u|--user|--proxy-user|-U)(?:[ \t=]{1,5})?[\"']?"
    r"[\w.@+-]{1,99}:(?P<s>[^\s\"':/]{1,512})"
)
_LONG_USER = lazy_re(r"(?<![\w-])--(?:proxy-)?user[ =][\"']?[\w.@+-]{1,99}:(?P<s>[^\s\"':/]{8,512})")
_SHORT = lazy_re(
    r"\b(?P<program>mysql|mysqldump|mysqladmin|mariadb"
    r"|sshpass)\b[^\n]{0,400}?[ \t]-p[ \t]{0,5}(?P<q>[\"']?)(?P<s>[^\s\"'-][^\s\"']{0,256})"
)
_LOGS_IN = lazy_re(
    r"\b(?:docker|podman|skopeo|buildah|nerdctl)[ \t]{1,5}login\b[^\n]{0,400}?[ \t]-p[ \t]{0,5}[\"']?"
    r"(?P<s>[^\s\"'-][^\s\"']{0,512})"
)
_REDIS = lazy_re(r"\bredis-cli\b[^\n]{0,400}?[ \t]-a[ \t]{1,5}[\"']?(?P<s>[^\s\"'-][^\s\"']{0,512})")
_PIPED = lazy_re(
    r"\becho[ \t]{1,5}(?:-n[ \t]{1,5})?[\"']?"
    r"(?P<s>[^\s\"'$]{4,512})[\"']?[ \t]{0,5}\|[^\n]{0,200}?(?:-stdin|\bsudo[ \t]{1,5}-S)"
)
_LDAP = lazy_re(r"\bldap[a-z]{3,10}\b[^\n]{0,400}?[ \t]-w[ \t]{1,5}[\"']?(?P<s>[^\s\"'-][^\s\"']{0,256})")
_PACKED = lazy_re(
    r"\b(?:(?:un)?zip\b[^\n|;]{0,200}?[ \t]-P[ \t]{1,5}|7z[ar]?\b[^\n|;]{0,200}?[ \t]-p"
    r"|openssl\b[^\n|;]{0,200}?[ \t]-[kK][ \t]{1,5})[\"']?(?P<s>[^\s\"'-][^\s\"']{3,256})"
)
_FLAGGED = lazy_re(
    r"\b(?:ssh-keygen\b[^\n|;]{0,200}?[ \t]-[NP]"
    r"|(?:az|oc|cf|(?:helm[ ])?registry|regctl|crane[ ]auth|argocd|vault|mc)[ \t]{1,8}login\b[^\n|;]{0,200}?[ \t]-p"
    r"|(?:mongo(?:sh|dump|restore|export)?|cqlsh|beeline|clickhouse-client|influx|kadmin)\b[^\n|;]{0,200}?[ \t]-[pw]"
    r"|(?:sqlcmd|bcp|ipmitool|isql|snmp[a-z]{2,8})\b[^\n|;]{0,200}?[ \t]-[PAX]"
    r"|rclone[ \t]{1,8}obscure|openssl[ \t]{1,8}passwd(?:[ \t]{1,8}-\w{1,16}){0,4}"
    r"|htpasswd[ \t]{1,8}-[a-zA-Z]{0,8}b[a-zA-Z]{0,8}[ \t]{1,8}\S{1,200}[ \t]{1,8}\S{1,99}"
    r"|net[ \t]{1,8}user[ \t]{1,8}\S{1,99}|rabbitmqctl[ \t]{1,8}(?:add_user|change_password)[ \t]{1,8}\S{1,99})"
    r"[ \t]{1,8}[\"']?(?P<s>(?![-/<$])[^\s\"'\\]{4,256})"
)
"""Programs that take a password after a short option, or as a word."""
_FLAGGING = (
    "ssh-keygen", "login", "mongo", "cqlsh", "beeline", "clickhouse", "influx", "kadmin", "sqlcmd", "bcp", "ipmitool",
    "isql", "snmp", "rclone", "passwd", "net user", "rabbitmqctl",
)  # fmt: skip
_PERCENT = lazy_re(
    r"\b(?:smb[a-z]{3,8}|rpcclient|net[ ](?:ads|rpc))\b[^\n|;]{0,200}?[ \t](?:-U|--user)[ \t=]{0,3}[\"']?"
    r"[\w.\\@+-]{1,99}%(?P<s>[^\s\"']{1,256})"
)
_DESKTOP = lazy_re(r"\b(?:xfreerdp|rdesktop)\b[^\n|;]{0,400}?[ \t](?:/p:|-p[ \t])[\"']?(?P<s>[^\s\"']{1,256})")
_PIPED_USER = lazy_re(
    r"\becho[ \t]{1,5}[\"']?[\w.-]{1,99}:(?P<s>(?!\$)[^\s\"']{4,256})[\"']?[ \t]{0,5}\|[^\n]{0,99}?\bchpasswd"
)
_NPM = lazy_re(r"\b_auth(?:Token)?[ \t]{1,5}(?P<s>[A-Za-z0-9+/=_-]{8,512})")
_SECURED = lazy_re(
    r"ConvertTo-SecureString(?:[ ]-(?:String|Force|AsPlainText))*[ ]\\{0,3}[\"']?(?P<s>[^\s\"'$()\\-][^\s\"'\\]{3,256})"
)
_OWNER = lazy_re(r"\d{1,10}:\d{1,10}\Z")
_NUMBER = lazy_re(r"[\d.]{1,20}\Z")


def spans(text: str) -> list[tuple[int, int]]:
    """Return the spans of secrets in command lines within a text."""
    found: list[tuple[int, int]] = []
    text = flat(text)
    if "-" in text:
        found += (m.span("s") for m in _FLAG.finditer(text) if _hides(m["name"], m["s"]))
        found += (m.span("s") for m in _LONG_USER.finditer(text) if is_a_secret(m["s"]))
        if "creds" in text:
            found += (m.span("s") for m in _CREDENTIALS.finditer(text))
        if "curl" in text or "wget" in text or "http" in text:
            found += (m.span("s") for m in _USER.finditer(text))
        for literal, pattern in (("-p", _SHORT), ("-p", _LOGS_IN), ("-a", _REDIS)):
            if literal in text and any(p in text for p in ("mysql", "maria", "sshpass", "login", "redis-cli")):
                found += (m.span("s") for m in pattern.finditer(text))
    if any(program in text for program in ("zip", "7z", "openssl")):
        found += (m.span("s") for m in _PACKED.finditer(text))
    if any(program in text for program in _FLAGGING):
        found += (m.span("s") for m in _FLAGGED.finditer(text))
    for literal, pattern in (
        ("-stdin", _PIPED),
        ("sudo", _PIPED),
        ("ldap", _LDAP),
        ("smb", _PERCENT),
        ("rpc", _PERCENT),
        ("rd", _DESKTOP),
        ("chpasswd", _PIPED_USER),
        ("_auth", _NPM),
        ("SecureS", _SECURED),
    ):
        if literal in text:
            found += (m.span("s") for m in pattern.finditer(text))
    if "login" in text:
        found += (m.span("s") for m in _LOGIN.finditer(text) if "." not in m["s"] and not secret(m["s"]))
    return [(start, end) for start, end in found if not is_harmless(text[start:end], text, start)]


def _hides(name: str, value: str) -> bool:
    kind, value = secret(name), value.removesuffix("\\n")
    if value.startswith(("$", "<", "***")) or value in words("no_value") or (secret(value) and "_" in value):
        return False
    if kind == "token":
        return len(value) >= 6 and not _NUMBER.match(value) and not (value.isalpha() and value.islower())
    return kind == "strong" or (kind == "key" and (is_opaque(value) or is_hash(value)))


def hidden(words: Sequence[str]) -> dict[int, str]:
    """Return index -> masked word, for each word of a command line that is or contains a secret."""
    programs = {word.rpartition("/")[2] for word in words[:8]}
    found: dict[int, str] = {}
    for n, word in enumerate(words):
        name, equals, _ = word.partition("=")
        following = words[n + 1] if n + 1 < len(words) else ""
        if word.startswith("-") and equals and secret(name.lstrip("-")) in ("strong", "token"):
            found[n] = f"{name}={MASK}"
        elif word.startswith("-") and following and not equals and _takes(word, following, programs):
            found[n + 1] = MASK
        elif word in ("-u", "--user", "-U", "--proxy-user") and ":" in following and not _OWNER.match(following):
            found[n + 1] = f"{following.partition(':')[0]}:{MASK}"
        elif word.startswith("-p") and len(word) > 2 and programs & set(_GLUED):
            found[n] = f"-p{MASK}"
        elif word == "login" and following and not following.startswith("-") and "." not in following:
            found[n + 1] = MASK
    return found


def _takes(flag: str, value: str, programs: set[str]) -> bool:
    """True if the value after this flag is a secret."""
    kind = secret(flag.lstrip("-"))
    if any(flag == _SPACED[program] for program in programs & set(_SPACED)):
        return True
    if value.startswith("--") or not kind:
        return False
    if kind == "key":
        return is_opaque(value) or is_hash(value)
    return kind == "strong" or (kind == "token" and not _NUMBER.match(value))
