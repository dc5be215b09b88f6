"""What the message of the failure itself says: what to do, or what is wrong with what was asked.

Only the exception that ended a rank counts, and only a sentence that is about this failure: hints that frameworks print
under every error are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from dtdebug_taxonomy.endings import Ending
from dtdebug_taxonomy.finding import plain

_SENTENCE = re.compile(r"(?<=[.!?;])\s+(?=[A-Z`'\"(])|\n")
_DO = (
    r"set|use|using|install|upgrade|downgrade|update|increase|raise|decrease|reduce|lower|add|remove|pass|specify"
    r"|provide|enable|disable|call|rename|replace|switch|change|choose|select|delete|reinstall|rebuild|export|define"
    r"|make sure|ensure|configure|correct the|launch|start|restart|run (?:your|the|it|this)"
)
_DOING = (
    "setting|installing|upgrading|increasing|reducing|adding|passing|enabling|disabling|calling|switching|running|run"
)
_ORDERS = re.compile(
    r"(?i)(?:^|[,:;.(] ?|\bor )"
    r"(?:please |try |instead,? |consider |you (?:can|must|should|need to|have to|may want to) )"
    rf"(?:also |either |to |try |first )?(?:{_DO}|{_DOING})\b"
    rf"|^(?!call \w{{1,60}} fail)(?:{_DO})\b.{{3}}|\bplease (?:{_DO})\b|\bdid you (?:mean|forget)\b"
)
_FAULT = re.compile(
    r"(?i)\b(?:must|should|needs? to|has to|have to) (?:not )?(?:be|have|match|equal|divide|contain|fit)\b"
    r"|\b(?:is|are) (?:not supported|incompatible|only supported|mutually exclusive|not compatible|not divisible)\b"
    r"|\b(?:does|do) not support\b|\bcan ?not be (?:used|combined) (?:with|together)|\brequires? .{1,60}\bto be\b"
    r"|\bhas been (?:removed|renamed|replaced)\b|\bis larger than the max(?:imum)?\b|\b(?:exceeds|greater than) the\b"
    r"|\bcan ?not be (?:larger|greater|smaller|less|more) than\b"
    r"|\b(?:can ?not|must not|should not) be (?:empty|negative|none|zero|called)\b|\b(?:is|are) supported only\b"
    r"|\bonly (?:one|\w{1,20}(?: or \w{1,20})?) (?:is|are|can be) (?:supported|allowed|used)\b|\bare required\b"
)
_REFUSED = re.compile(
    r"(?i)\bis not equal to\b|\bis required (?:for|by|when|to)\b|\brequires? .{1,40}(?:[<>]=|at least)"
    r"|\bnot in struct\b|\b(?:is|are) (?:invalid|out of range)\b|\brequires? .{1,60}\binstalled\b"
    r"|\bnot (?:yet |currently )?(?:supported|available|enabled|implemented|compatible|permitted|allowed)\b"
    r"|\bonly (?:supports?|works? (?:with|for)|available|implemented|compatible|allowed)\b|\bgot multiple values for\b"
    r"|\bunrecognized arguments?\b|\binvalid choice\b|\bis not a valid\b"
    r"|\brequires? (?!grad\b)[\w`'\" -]{3,60}|\b(?:has|have|is|are) (?:already|not) (?:been )?"
    r"(?:initiali[sz]ed|set|called|found|detected)\b"
    r"|^(?:\w{1,30}: )?(?:unsupported|invalid|unknown|unexpected) \w{2,30}\b"
)
"""What refuses something without saying what should be: causes that are known come before it."""
_EVERYWHERE = re.compile(
    r"(?i)CUDA_LAUNCH_BLOCKING|TORCH_USE_CUDA_DSA|DEVICE_SIDE_ASSERT|NCCL_DEBUG|TORCHDYNAMO_VERBOSE|TORCH_LOGS"
    r"|suppress_errors|HYDRA_FULL_ERROR|SHOW_CPP_STACK|TORCH_DISTRIBUTED_DEBUG|TORCH_CPP_LOG|PYTORCH_(?:CUDA_|HIP_)?ALLOC_CONF"
    r"|report (?:this|it|a bug)|open an issue|file an issue|ignore this|silence|this warning|future version|deprecat"
    r"|find_unused_parameters|set_detect_anomaly|for (?:more|further) (?:info|detail)|stack ?trace|OMP_NUM_THREADS"
    r"|for debugging|be aware|see the (?:doc|log)|check the log|weights_only|error_file|FI_LOG|add the following flag"
    r"|restart your program to reset|=[\"']?\$[\w{(]"
)
_ALLOWS = re.compile(
    r"(?i)\b(?:must|should) be (?:either|one of|in|among)\b(?P<allowed>.{3,200}?)\b(?:got|but|not)\b(?P<got>.{2,80})"
)
"""A check that names what it allows, and what it got."""
_QUOTED = re.compile(r"[`'\"]([^`'\"]{1,40})[`'\"]")
_CALLED = re.compile(r"\b([A-Za-z_]\w{3,60})\(\)")
_SHAPES = re.compile(r"(?i)\bsizes? of tensor|\bshapes? (?:cannot|can't|do not|mismatch)|at non-singleton dimension")
"""What says that something does not fit, and neither why nor what to change."""
_SETTING = re.compile(
    r"(?<![\w/'-])(?:--[a-z][\w-]{2,60}|[a-z][a-z0-9]{0,40}(?:[._][a-z0-9]{1,40}){1,6}|[A-Z][A-Z0-9]{1,30}(?:_[A-Z0-9]{1,30}){1,6})"
    r"(?![\w(/])"
)
_NO_SETTING = re.compile(r"\.py$|^(?:self|torch|dist|cls)$|^[a-z]+$|^e\.g$|^i\.e$")
"""Files, objects and single words, which are no names of settings."""
_ASSERT = re.compile(r"assert (?P<held>.{5,200}[^(,\\\s])$")
_CHECKS = frozenset({"ValueError", "AssertionError", "NotImplementedError", "ValidationError", "ConfigKeyError"})
"""What checks of settings raise: if it names one, the message speaks of what was set."""
_NAMES = 3
_LONGEST = 300
_LEAST = 12


class Advised(NamedTuple):
    """A sentence of the message."""

    words: str
    orders: bool
    """It says what to do; else what is wrong with what was asked."""
    line: int
    """Line of the output; 0 where there is none."""
    rank: int | None
    refused: bool = False
    """It only says that something is refused, or which assertion failed."""
    settings: tuple[str, ...] = ()
    """Names in it that are written as settings are: `context_parallel_size`, `--tp-size`."""


def advised(endings: Iterable[Ending], told: str = "") -> Advised | None:
    """The first sentence of the failure's message that says what to do, else one that says what is wrong.

    An assertion without a message says by its line of code what should have held. What the user says to do already
    (`told`), and a check that refuses what it allows, are no advice.
    """
    fault = refused = None
    for ending in endings:
        checks = ending.type.rpartition(".")[2] in _CHECKS
        for words in _sentences(ending):
            if _ORDERS.search(words):
                if any(f"{name[1]}(" in told for name in _CALLED.finditer(words)):
                    continue
                return _row(ending, words, orders=True)
            if _SHAPES.search(words) or refuses_what_it_allows(words):
                continue
            if fault is None and _FAULT.search(words):
                fault = _row(ending, words)
            if refused is None and (_REFUSED.search(words) or (checks and settings(words))):
                refused = _row(ending, words, refused=True)
        if refused is None and (held := _asserted(ending)):
            refused = _row(ending, held, refused=True)
    return fault or refused


def refuses_what_it_allows(words: str) -> str:
    """The value that a check names as allowed and refuses all the same; empty for any other sentence."""
    found = _ALLOWS.search(words)
    if found is None:
        return ""
    got, allowed = _QUOTED.search(found["got"]), _QUOTED.findall(found["allowed"])
    return got[1] if got is not None and got[1] in allowed else ""


def _sentences(ending: Ending) -> Iterator[str]:
    for text in (ending.message, *ending.below):
        for sentence in _SENTENCE.split(text[:4_000]):
            words = " ".join(plain(sentence, _LONGEST).split())
            if len(words) >= _LEAST and not _EVERYWHERE.search(words):
                yield words


def _row(ending: Ending, words: str, *, orders: bool = False, refused: bool = False) -> Advised:
    return Advised(words, orders, ending.line, ending.rank, refused, settings(words))


def settings(words: str) -> tuple[str, ...]:
    """Names that are written as settings are, each once, the last part of those with dots."""
    found = (m[0].rpartition(".")[2] for m in _SETTING.finditer(words))
    return tuple(dict.fromkeys(name for name in found if not _NO_SETTING.search(name)))[:_NAMES]


def _asserted(ending: Ending) -> str:
    """What should have held: `self.context_parallel_size == 1`."""
    if ending.type != "AssertionError" or ending.message.strip():
        return ""
    found = _ASSERT.match(ending.code)
    return f"this does not hold: {plain(found['held'], _LONGEST).strip()}" if found is not None else ""
