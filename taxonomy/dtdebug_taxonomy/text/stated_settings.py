"""Settings of a run that a clause states: a release, an option's value, an alternative, a part, a place, a count."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from dtdebug_taxonomy.text.lazy_re import lazy_re
from dtdebug_taxonomy.text.outcomes import BAD_WORDS, GOOD_WORDS

Kind = Literal["release", "option", "choice", "part", "place", "count"]


class Setting(NamedTuple):
    """A setting of one kind with its value, and where the text states it."""

    kind: Kind
    factor: str
    value: str
    at: int


_NUMBER = r"\d{1,5}|one|single|a single|two|three|four|eight|sixteen|several|multiple|multi|many|more than (?:one|1)"
_COUNT = lazy_re(
    rf"(?i)(?<![\w.])(?P<n>{_NUMBER})(?!st\b|nd\b|rd\b|th\b)(?:[ -]|x )?(?:(?!per\b)[a-z]\w{{0,9}}[ -]){{0,2}}?"
    r"(?P<unit>gpu|card|device|node|machine|host|server|process|rank|worker)(?:e?s)?\b(?!/)"
    r"|(?<![\w.])(?P<n2>\d{1,4}) ?[x*\u00d7] ?(?:nvidia )?(?:[abhv]\d00|a10g?|t4|l40s?"
    r"|rtx ?\d{4}|[3-5]0[5-9]0|mi\d{3}x?)(?:s|ti)?\b"
)
_UNITS = {
    "gpu": "GPU", "card": "GPU", "device": "GPU", "node": "node", "machine": "node", "host": "node", "server": "node",
    "process": "process", "rank": "process", "worker": "worker",
}  # fmt: skip
_ONES = frozenset({"1", "one", "single", "a single"})
_RELEASE = lazy_re(
    r"(?<![\w/.-])(?:(?P<name>[A-Za-z][\w-]{1,30})(?:[ =:-]{1,3}|\s(?:version|release|build)s?\s))?\(?"
    r"v?(?P<release>\d{1,4}\.\d{1,4}(?:\.\d{1,5})?(?:\.?(?:post|rc|dev)\d{0,8})?)(?![\w%/]|\.\d| ?(?:s|ms"
    r"|sec\w{0,4}|min\w{0,4}|hours?|it/s|[GMK]i?B|percent|x)\b)"
)
NO_PACKAGE = frozenset(
    [
        "with",
        "in",
        "on",
        "of",
        "version",
        "release",
        "from",
        "to",
        "is",
        "and",
        "at",
        "using",
        "was",
        "by",
        "for",
        "the",
        "gpu",
        "loss",
        "lr",
        "about",
        "than",
        "only",
        "grad",
        "norm",
        "it",
        "or",
        "under",
        "since",
        "until",
        "before",
        "after",
        "accuracy",
        "score",
        "reward",
        "rate",
        "step",
        "epoch",
        "install",
        "installed",
        "use",
        "used",
        "try",
        "tried",
        "run",
        "pin",
        "pinned",
        "into",
        "now",
        "got",
        "get",
        "gives",
        "build",
        "stable",
        "nightly",
        "branch",
        "ubuntu",
        "be",
        "are",
        "as",
        "temperature",
        "ratio",
        "dropout",
        "factor",
        "value",
        "around",
        "=",
    ]
)
_VALUE_OF = lazy_re(r"[\w)\]'\"][)'\"\]]{0,3}\s?[:=]\s?[\"']?$")
"""Text before the value of some key, as logs and dictionaries print it: `'memory(GiB)': `."""
_AMOUNTS = frozenset(
    {"loss", "lr", "grad", "norm", "accuracy", "score", "reward", "rate", "step", "epoch", "temperature", "ratio"}
    | {"dropout", "factor", "value", "about", "around"}
)
"""Words before a number that is no release."""
_BRANCH = lazy_re(r"(?i)\b(?!the |a |this |that |my )[\w-]{2,24} (?:branch|build|nightly)\b")
_OPTION = lazy_re(
    r"(?<![\w-])(?P<name>--?[a-zA-Z][\w-]{1,40}|[A-Za-z]\w{0,30}(?:_\w{1,30}){1,6}|[tpcedv]p(?:[_ ]size)?|TP|PP"
    r"|DP|EP|CP)"
    r"(?: ?[=:] ?| ?(?P<above>>) ?| is | (?:set )?to | of | (?=\d|[Tt]rue|[Ff]alse))[\"']?"
    r"(?P<value>\d[\d,]{0,12}(?:\.\d{1,6})?|[Tt]rue"
    r"|[Ff]alse|None|[\w./-]{1,24})"
)
_QUANTITY = lazy_re(
    r"(?i)^(?!--|(?:max|min|clip|target|limit|use|log|eval|no|init|weight)[_-])(?:[a-z0-9]{1,20}[_-]){0,4}"
    r"(?:loss(?:es)?|grad(?:ient)?s?|(?:grad(?:ient)?|global)[_-]norm|acc(?:uracy)?|memory|speed|time|throughput|outputs?"
    r"|errors?|reward|score|ppl|perplexity|mfu|results?|top1|top5)$"
)
"""Names of what a run gives: their values are symptoms, no settings."""
_STATE = frozenset({
    "normal", "nan", "inf", "fine", "right", "wrong", "ok", "good", "bad", "not", "too", "very", "much", "always",
    "still", "zero", "high", "higher", "low", "lower", "larger", "smaller", "correct", "stable", "the", "a", "also",
})  # fmt: skip
"""Words after `is` that are an outcome, no value."""
_STAGE = lazy_re(r"(?i)\b(?:(?:deepspeed )?zero[- _]?(?:stage)?[- _=]{0,3}|stage ?=? ?)(?P<value>[0-3])\b")
_FSDP = lazy_re(r"(?i)\bfsdp(?:[ _]?version)?[ _=]{0,2}(?P<value>[12])\b")
_CHOICES: dict[str, str] = {
    "backend": r"nccl|gloo|mpi|ucc|rccl|hccl|oneccl|xccl",
    "strategy": r"fsdp[12]?|hsdp|deepspeed|ddp|dp|dataparallel|colossal-?ai|megatron(?:-lm)?|horovod|fairscale",
    "parallelism": r"(?:tensor|pipeline|context|sequence|expert|data|model)[ -]parallel(?:ism)?|\d{1,3}-way [mtpdce]p",
    "precision": r"fp16|bf16|fp32|tf32|fp8|float16|bfloat16|float32|half precision|full precision|mixed precision",
    "launcher": r"torchrun|mpirun|srun|accelerate launch|horovodrun|mp\.spawn|torch\.distributed\.launch",
    "start method": r"fork(?:server)?|spawn",
    "processor": r"cpu|gpu|tpu|npu|xpu|mps",
    "card": r"[abhv]\d00s?|a10g?|t4s?|l40s?|rtx ?\d{4}|[3-5]0[5-9]0s?|mi\d{3}x?|titan",
    "optimizer": r"adamw?|sgd|lamb|adafactor|lion|muon|adagrad",
    "attention": r"flash[- _]?attn|flash[- _]attention(?:[- _]?2)?|sdpa|eager|xformers",
    "system": r"windows|linux|ubuntu|wsl2?|macos",
    "network": r"infiniband|ethernet|roce|efa|tcp",
    "container": r"docker|singularity|apptainer|bare metal",
    "point": r"(?:mid(?:dle)?[- ](?:of[- ](?:an |the )?)?epoch|epoch boundar(?:y|ies)|non-epoch boundary)",
}  # fmt: skip
_CHOICE = lazy_re(
    "(?i)(?<![\\w./-])(?:"
    + "|".join(f"(?P<f{n}>{words})" for n, words in enumerate(_CHOICES.values()))
    + ")(?![\\w/-]|\\.\\w)"
)
_FAMILIES = tuple(_CHOICES)
_IS_SUBJECT = lazy_re(rf"\s{{1,2}}(?:{GOOD_WORDS}|{BAD_WORDS})", re.IGNORECASE)
_BY = frozenset(
    [
        "with",
        "using",
        "under",
        "by",
        "via",
        "for",
        "on",
        "from",
        "to",
        "between",
        "and",
        "only",
        "in",
        "of",
        "use",
        "used",
        "the",
        "without",
        "is",
    ]
)
_PART = lazy_re(
    r"(?i)\b(?P<how>without|with(?! (?:it|this|that|them|the same)\b)|w/o|enabling|disabling|enabled?|disabled?"
    r"|removing|adding"
    r"|(?:turn|turned|turning|switch|switched|switching) (?:off|on)|use|using)\s+"
    r"(?:the |a |an |any |my |our )?(?P<thing>[a-zA-Z_][\w.()=-]{2,40}(?: (?!it\b|the\b|is\b|and\b|for\b|with\b"
    r"|on\b|off\b|in\b|works?\b|then\b|as\b|to\b|when\b|at\b|that\b|has\b|does\b|all\b|they\b|i\b|we\b|enabled\b"
    r"|disabled\b|are\b|was\b)[\w.()=-]{2,24}){0,3})"
    r"(?P<after> (?:is |are |was )?(?:on|off|enabled|disabled)\b)?"
    r"|(?P<thing2>[a-zA-Z_][\w-]{2,30}(?: [\w-]{3,24}){0,2}) (?:is |are |was )?(?:turned "
    r"|switched )?(?P<after2>on|off|enabled|disabled)\b"
)
_OFF = lazy_re(r"(?i)^(?:without|w/o|disabl|remov|.*\boff$)")
_PLACE = lazy_re(
    r"(?i)\b(?:on|in|at|outside(?: of)?|inside(?: of)?) (?P<place>(?:another|(?:my|the|our|a|one)(?: (?:other|old"
    r"|older|new|newer|same|different|local|second|first|big|small))?)"
    r" (?:machine|cluster|server|laptop|box|computer|workstation|desktop|container|image|instance|partition"
    r"|framework|program|repo(?:sitory)?|colab|kaggle))\b"
    r"|(?P<here>\blocally\b)"
)


def settings_of(clause: str, at: int) -> Iterator[Setting]:
    """Yield what a clause says of how it was run."""
    for m in _RELEASE.finditer(clause):
        name = (m["name"] or "").lower()
        if "_" in name and name.rpartition("_")[2] in NO_PACKAGE:
            continue  # max_grad_norm=1.0 is an option
        if name in _AMOUNTS or (not name and _VALUE_OF.search(clause, max(m.start() - 8, 0), m.start())):
            continue
        if len(m["release"].split(".")) > 1:
            yield Setting("release", "" if name in NO_PACKAGE else name, m["release"], at + m.start())
    for m in _BRANCH.finditer(clause):
        yield Setting("release", "", m[0].strip(), at + m.start())
    yield from _options(clause, at)
    for m in _CHOICE.finditer(clause):
        before = clause[: m.start()].split()[-1:]
        if not (before and before[0].lower() in _BY) and not _IS_SUBJECT.match(clause, m.end()):
            continue  # "accelerate's DDP example" names no alternative
        yield Setting("choice", _FAMILIES[int((m.lastgroup or "f0")[1:])], m[0], at + m.start())
    for m in _PART.finditer(clause):
        thing = " ".join((m["thing"] or m["thing2"]).split())
        if _QUANTITY.search(thing.split()[0]) or _QUANTITY.search(thing.replace(" ", "_")):
            continue
        how = f"{m['how'] or ''}{m['after'] or m['after2'] or ''}".strip()
        off = _OFF.search(how) is not None
        yield Setting("part", thing.lower(), "off" if off else "on", at + m.start())
    for m in _PLACE.finditer(clause):
        yield Setting("place", "place", (m["place"] or m["here"]).lower(), at + m.start())
    yield from _counts(clause, at)


def alternatives_in(clause: str, at: int) -> Iterator[Setting]:
    """Yield all alternatives that a clause on the writer's own run names, however they stand in it."""
    for m in _CHOICE.finditer(clause):
        yield Setting("choice", _FAMILIES[int((m.lastgroup or "f0")[1:])], m[0], at + m.start())


def _options(clause: str, at: int) -> Iterator[Setting]:
    for m in _STAGE.finditer(clause):
        yield Setting("option", "ZeRO stage", m["value"], at + m.start())
    for m in _FSDP.finditer(clause):
        yield Setting("option", "FSDP version", m["value"], at + m.start())
    for m in _OPTION.finditer(clause):
        value = m["value"].rstrip(",")
        if m["name"].lower().startswith("zero") or "version" in m["name"]:
            continue
        if not (_QUANTITY.search(m["name"]) or value.lower().rstrip(".") in _STATE):
            yield Setting("option", m["name"], f"> {value}" if m["above"] else value, at + m.start())


def _counts(clause: str, at: int) -> Iterator[Setting]:
    for m in _COUNT.finditer(clause):
        n = (m["n"] or m["n2"]).lower()
        value = (
            "1"
            if n in _ONES
            else "several"
            if not n.isdigit() and n not in {"two", "three", "four", "eight", "sixteen"}
            else n
        )
        yield Setting("count", _UNITS[(m["unit"] or "gpu").lower()], value, at + m.start())
