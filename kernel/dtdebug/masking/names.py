"""Values of names that say what they are: `WANDB_API_KEY=...`, `"password": "..."`, `clientSecret: ...`.

A name is read word by word: `access_token` is a secret, `pad_token`, `token_type_ids` and `tokenizer` are not.
"""

from __future__ import annotations

import re
from functools import lru_cache

from dtdebug.masking.noise import is_opaque, is_random

_TRIGGERS = re.compile(
    r"(?i)pass|pwd|token|secret|key|credential|auth|sig|session|cookie"
    r"|connectionstring|sid|pin|dsn"
)
_IN_NAME = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"
_LONGEST = 64
_REST = re.compile(rf"[A-Za-z0-9_.-]{{0,{_LONGEST}}}")
_WORDS = re.compile(r"[A-Z]{2,40}(?![a-z])|[A-Z]?[a-z]{1,40}|[A-Z]")
_ASSIGNS = re.compile(
    r"\]?(?P<close>\\{0,3}[\"'])?\]?(?P<sep>[ \t]{0,3}(?:=>|:=|=(?!=)|:"
    r"(?![:/]))[ \t]{0,3}|\\{0,3}[\"'],[ \t]{0,3}(?=\\{0,3}[\"']))"
    r"(?P<kind>[brfu]{1,2}(?=[\"']))?(?P<quote>\\{0,3}[\"'`])?"
)
"""From a name to its value. With a comma alone only where both are quoted: items of a list or of a tuple."""
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
        "secrets",
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
    [
        "api",
        "access",
        "secret",
        "private",
        "auth",
        "account",
        "signing",
        "encryption",
        "shared",
        "service",
        "license",
        "licence",
        "subscription",
        "master",
        "deploy",
        "app",
        "application",
        "storage",
        "client",
        "admin",
        "write",
        "read",
        "ingest",
        "function",
        "webhook",
        "hmac",
        "jwt",
        "ssh",
        "wandb",
        "comet",
        "openai",
        "anthropic",
        "hf",
        "azure",
        "google",
        "aws",
        "ngc",
        "kaggle",
    ]
)
"""Words before `key` that make it a secret."""
_VENDORS = frozenset(
    """
    adafruit airtable algolia alibaba aliyun artifactory asana backblaze baidu beamer binance bitbucket buildkite
    circleci cloudflare cohere coinbase confluent contentful databricks datadog deepseek digitalocean discord
    docker dropbox dynatrace elastic etsy facebook fastly finicity finnhub firebase freshbooks gemini github
    gitlab grafana groq heroku hetzner hubspot huggingface ibm intercom jfrog kraken kucoin langchain langsmith
    launchdarkly linkedin linode lob mailchimp mailgun mapbox mattermost meraki messagebird minio mistral mlflow
    neptune netlify newrelic notion npm nytimes okta pagerduty paperspace paypal perplexity pinecone plaid postman
    privateai rapidapi replicate roboflow runpod scaleway sendbird sendgrid sentry shippo shopify slack snyk sonar
    sonarqube squarespace sumo sumologic supabase tailscale telegram tencent terraform together travis twilio
    twitch twitter typeform vultr wasabi weaviate yandex zendesk zilliz
""".split()  # noqa: SIM905 - as words, not a hundred lines
)
"""Vendors whose key is a secret if it looks like no word."""
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
_WEAK = re.compile(
    r"(?i)(?:sig|signature|x-amz-(?:signature|credential|security-token)|x-goog-"
    r"(?:signature|credential)|awsaccesskeyid"
    r"|googleaccessid|[a-z]{0,8}sess(?:ion)?_?"
    r"(?:id)?|sid|[a-z._-]{0,16}auth|key|.{0,24}sessid|.{0,24}_key|dsn|pin)\Z"
)
"""Names whose value is a secret if it looks like one."""
_VALUE = re.compile(r"[^\s\"'`]{1,4096}+")
_LOOSE = re.compile(r"\S{1,4096}+")
_NEXT = re.compile(r"(?:[;&,]|\\[nrt])[ ]?(?=[A-Za-z][\w .-]{0,40}[=:])")
"""Where another assignment begins in what has no space."""
_HARMLESS = re.compile(
    r"(?i)(?:[+-]?\d{0,4}[.,]\d{1,9}"
    r"(?:e[+-]?\d{1,3})?|true|false|none|null|nil|yes|no|on|off|str|int|bytes|float|bool|\*{2,64})\Z"
)
_NUMBER = re.compile(r"[\d.,e+-]{1,64}\Z")
_PLACEHOLDER = re.compile(
    r"(?:\$\{?[A-Za-z_(]|\$\(|%\(|%[sdr]\b|\{[A-Za-z_.\d]{0,64}\}|<[A-Za-z_][\w .-]{0,64}>|\*{3}|\.{3}"
    r"|x{4,64}\b|\[[A-Z]{1,20}\])"
)
_CODE = re.compile(
    r"[A-Za-z_]\w{0,64}(?:\.[A-Za-z_]\w{0,64}){0,8}[\[(]|"
    r"(?:self|args|cfg|config|os|opts?|settings|kwargs)\."
)
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
        span = value(text, begin, begin + len(name), name)
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
    quote = assigns["quote"] or ""
    start = assigns.end()
    if quote:
        stop = _closing(text, start, quote)
        said = text[start:stop]
        if not said or _PLACEHOLDER.match(said) or _HARMLESS.match(said):
            return None
        if kind == "strong" and (" " not in said or _NUMBER.match(said) or assigns["close"] or "=" in assigns["sep"]):
            return start, stop
        return (start, stop) if _credible(said, kind) else None
    stop = _end(text, start)
    said = text[start:stop]
    if not any(map(str.isalnum, said)) or _PLACEHOLDER.match(text, start) or _HARMLESS.match(said) or _CODE.match(said):
        return None
    if kind == "strong":
        prose = ":" in assigns["sep"] and _PLAIN.match(said) and _WORD_FOLLOWS.match(text, stop)
        code = said.rstrip(",)") in (name, name.rpartition(".")[2])
        return None if prose or code else (start, stop)
    if kind == "token" and "=" in assigns["sep"] and len(said) >= 6 and said.isalnum() and not said.isdigit():
        return start, stop
    return (start, stop) if _credible(said, kind) else None


def _credible(said: str, kind: str) -> bool:
    """A value that is no word, no number and no identifier of a program."""
    if kind == "weak":
        return len(said) >= 16 and is_random(said)
    if " " in said or len(said) < 6 or _NUMBER.match(said):
        return False
    words = re.fullmatch(r"<?\|?[A-Za-z_]{1,64}\|?>?", said)
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
    return start + len(said.rstrip(",;)}]>\"'`" if said[-1:] != "=" else ""))


@lru_cache(maxsize=4096)
def secret(name: str) -> str:
    """Of what kind a name's value is: `strong`, `token`, `weak`, or nothing."""
    words = [word.lower() for word in _WORDS.findall(name)]
    while len(words) > 1 and words[-1] in _AFTER:
        if words[-1] in _NO_SECRET_AFTER and words[-2] != "secret":
            return "weak" if _WEAK.match(name) else ""
        words.pop()
    if not words:
        return ""
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    joined = before + last
    if last in _STRONG or joined in _STRONG or last.endswith(("password", "passwd", "passphrase")):
        return (
            "strong"
            if before not in ("forward", "backward", "first", "second", "multi", "by", "single", *_PASSES)
            else ""
        )
    if last == "key" and before in _KEYS:
        return "strong"
    if last == "key" and before in _VENDORS:
        return "token"
    if last in ("token", "tokens"):
        plural = last == "tokens" and before not in ("api", "access", "auth")
        return "" if plural or before in _NO_TOKEN else "token"
    if joined in ("connectionstring", "sessiontoken"):
        return "strong"
    return "weak" if _WEAK.match(name) else ""
