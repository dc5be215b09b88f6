"""The failure's own message: it says what to do, or what is wrong with the request.

Only the exception that ended a rank counts, and only a sentence about this failure: hints that frameworks print under
every error are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from dtdebug_taxonomy.logs.exception_roles import role_of
from dtdebug_taxonomy.logs.final_errors import REFUSED_CALL, FinalError
from dtdebug_taxonomy.text.lazy_re import lazy_re
from dtdebug_taxonomy.text.pattern_matcher import plain

_SENTENCE = lazy_re(r"(?<=[.!?;])\s+(?=[A-Z`'\"(])|\n")
_DO = (
    r"set|use|using|install|upgrade|downgrade|update|increase|raise|decrease|reduce|lower|add|remove|pass|specify"
    r"|provide|enable|disable|adjust|modify|call|rename|replace|switch|change|choose|select|delete|reinstall|rebuild|export|define"
    r"|make sure|ensure|configure|correct the|launch|start|restart|run (?:your|the|it|this)"
)
_DOING = (
    "setting|installing|upgrading|increasing|reducing|adding|passing|enabling|disabling|calling|switching|running|run"
)
_ORDERS = lazy_re(
    r"(?i)(?:^|[,:;.(] ?|\bor )"
    r"(?:please |try |instead,? |consider |you (?:can|must|should|need to|have to|may want to) )"
    rf"(?:also |either |to |try |first )?(?:{_DO}|{_DOING})\b"
    rf"|^(?:for|to) [^,.]{{3,60}}, (?:{_DO})\b.{{3}}"
    rf"|^(?!call \w{{1,60}} fail)(?:{_DO})\b.{{3}}|\bplease (?:{_DO})\b|\bdid you (?:mean|forget)\b"
    r"|\b(?:please|try|consider) (?!again|running again|later)(?:\w{2,20}ing|check|verify)\b.{3}"
    r"|\b(?:python3? -m |uv )?pip3? install [\w'\"-]|^consider \w{2,20}ing\b"
)
_FAULT = lazy_re(
    r"(?i)\b(?:must|should|needs? to|has to|have to) (?:not )?(?:be|have|match|equal|divide|contain|fit)\b"
    r"|\b(?:is|are) (?:not supported|incompatible|only supported|mutually exclusive|not compatible|not divisible)\b"
    r"|\bdo(?:es)?(?: not|n.t) support\b|\bcan ?not be (?:used|combined) (?:with|together)|\brequires? .{1,60}\bto be\b"
    r"|\bhas been (?:removed|renamed|replaced)\b|\bis larger than the max(?:imum)?\b|\b(?:exceeds|greater than) the\b"
    r"|\bcan ?not be (?:larger|greater|smaller|less|more) than\b"
    r"|\b(?:can ?not|must not|should not) be (?:empty|negative|none|zero|called)\b|\b(?:is|are) supported only\b"
    r"|[\w-](?:[<>]=|==|~=)v?\d[\w.]{0,20} is required\b.{0,80}\bfound\b"
    r"|\bonly (?:one|[^.]{1,40}? per \S{1,9}|\w{1,20}(?: or \w{1,20})?) (?:is|are|can be) (?:supported|allowed|used)\b"
    r"|\bare required\b"
    r"|\bonly makes? sense with\b|\bunknown to this\b"
)
_REFUSED = lazy_re(
    r"(?i)\bis not equal to\b|\bis required (?:for|by|when|to)\b|\brequires? .{1,40}(?:[<>]=|at least)"
    r"|\b(?:is|are|was|were) only (?:possible|allowed|valid|available|implemented)\b"
    r"|\bnot (?:yet |been )?tested (?:for|with)\b"
    r"|\bcan(?:not|'t| not) (?:be (?!found|loaded|read|opened|reached|import|resolved|connected)\w{2,20}"
    r"|provide|contain|have|work with|use|mix|combine|specify)\b"
    r"|\b(?:do|does|did)(?: not|n't) (?:match|agree|divide|fit|equal|work (?:with|in|on))\b"
    r"|\b(?:discrepancy|mismatch|conflict) between\b|\bbut (?:got|found|received|was|were|is) \S"
    r"|\b(?:is|are) (?:inconsistent|incorrect|too (?:large|small|long|many|few))\b"
    r"|\bexpected .{2,80}\bgot\b|\bcan only be?\b|\bonly (?:be|take|accept)\b|\blikely (?:due to|caused by|because)\b"
    r"|\bdoes not appear to have\b"
    r"|\bis (?:corrupt(?:ed)?|truncated|damaged)\b"
    r"|\bnot in struct\b|\b(?:is|are) (?:invalid|out of range)\b|\brequires? .{1,60}\binstalled\b"
    r"|\bnot (?:yet |currently )?(?:supported|available|enabled|implemented|compatible|permitted|allowed)\b"
    r"|\bonly (?:supports?|works? (?:with|for)|available|implemented|compatible|allowed)\b|\bgot multiple values for\b"
    r"|\bunrecognized arguments?\b|\binvalid choice\b|\bis not a valid\b"
    r"|\brequires? (?!grad\b)[\w`'\" -]{3,60}|\b(?:has|have|is|are) (?:already|not) (?:been )?"
    r"(?:initiali[sz]ed|set|called|found|detected)\b"
    r"|^(?:\w{1,30}: )?(?:unsupported|invalid|unknown|unexpected) \w{2,30}\b"
)
"""Refusals that do not say what would be allowed: known causes come before them."""
_EVERYWHERE = lazy_re(
    r"(?i)CUDA_LAUNCH_BLOCKING|TORCH_USE_CUDA_DSA|DEVICE_SIDE_ASSERT|NCCL_DEBUG|TORCHDYNAMO_VERBOSE|TORCH_LOGS"
    r"|suppress_errors|HYDRA_FULL_ERROR|SHOW_CPP_STACK|TORCH_DISTRIBUTED_DEBUG|TORCH_CPP_LOG|PYTORCH_(?:CUDA_|HIP_)?ALLOC_CONF"
    r"|report (?:this|it|a bug)|open an issue|file an issue|ignore this|silence|this warning|future version|deprecat"
    r"|find_unused_parameters|set_detect_anomaly|for (?:more|further) (?:info|detail)|stack ?trace|OMP_NUM_THREADS"
    r"|for debugging|be aware|see the (?:doc|log)|check the log|weights_only|error_file|FI_LOG|add the following flag"
    r"|argument must be a string, a bytes-like|not '?NoneType'?$"
    r"|\bthe above to fix\b|restart your program to reset|^if this (?:fires|happens|fails)\b|=[\"']?\$[\w{(]"
    r"|^(?:trial \S{1,80}|training) errored after \d"
)
_ALLOWS = lazy_re(
    r"(?i)\b(?:must|should) be (?:either|one of|in|among)\b(?P<allowed>.{3,200}?)\b(?:got|but|not)\b(?P<got>.{2,80})"
)
"""A check that names what it allows, and what it got."""
_QUOTED = lazy_re(r"[`'\"]([^`'\"]{1,40})[`'\"]")
_CALLED = lazy_re(r"\b([A-Za-z_]\w{3,60})\(\)")
_SET = lazy_re(r"\b[A-Za-z]\w{2,40}=[\w.'\"]{1,40}")
_CONCRETE = lazy_re(r"\b[A-Za-z][\w.]{2,60}=[\w.'\"]|\w\(|(?<![\w-])--[a-z]|\binstall [\w'\"-]|`[^`\n]{3,200}`")
"""Words that can be typed: an assignment, a call, an option, an installation, code between ticks."""
_SHAPES = lazy_re(
    r"(?i)\bsizes? of tensor|\bshapes? (?:cannot|can't|do not|mismatch)|\bdoes not match the shape\b"
    r"|at non-singleton dimension"
    r"|\b(?:number of|same) dimensions: got|\bshape=\(.{1,80}\) are not compatible|\bobject does not support item\b"
    r"|\bexpected (?:dtype|scalar type) .{1,60}\b(?:but )?(?:got|found) (?:dtype )?"
    r"|^(?:Tensors of the same index must|expected all tensors) .{0,60}\b(?:device|dtype)\b"
    r"|\b(?:got|not|received) (?:an? )?'?NoneType\b"
)
"""Statements that something does not fit, without a reason or a remedy."""
_SETTING = lazy_re(
    r"(?<![\w/'-])(?:--[a-z][\w-]{2,60}|[a-z][a-z0-9]{0,40}(?:[._][a-z0-9]{1,40}){1,6}|[A-Z][A-Z0-9]{1,30}(?:_[A-Z0-9]{1,30}){1,6})"
    r"(?![\w(/])"
)
_TAG = lazy_re(
    r"\[[A-Z][A-Z0-9_]{1,40}\]|\b[\w.-]{1,80}\.(?:c|cc|cpp|cu|hpp?):\d{1,6} \w{1,60}:|\[type=\w{1,60}, input_value=.*"
)
"""Position in a library, and what pydantic adds."""
_NO_SETTING = lazy_re(r"\.py$|^(?:self|torch|dist|cls|b?float\d{1,2}|u?int\d{1,2}|half|bool)$|^[a-z]+$|^e\.g$|^i\.e$")
"""Files, objects and single words, which are no names of settings."""
_ASSERT = lazy_re(r"assert (?P<held>.{5,200}[^(,\\\s])$")
_NATIVE = lazy_re(r"Check failed: (?P<held>.{5,300})")
"""Output of C++ assertion macros: the condition, and the reason if one was written."""
_CHECKS = frozenset({"ValueError", "AssertionError", "NotImplementedError", "ValidationError", "ConfigKeyError"})
"""Exceptions of checks of settings: a setting named in the message was set wrong."""
_WRITTEN = lazy_re(r"raise (?:\w{1,60}\.){0,6}(?P<type>[A-Z]\w{1,60})\(|assert ")
"""A line of code that refuses: its author wrote the message for this very case, unless another raised it."""
_PYTHONS = lazy_re(r"[/\\][Ll]ib[/\\]python[\d.]{1,5}[/\\](?!(?:site|dist)-packages[/\\])|^<")
_SAYS_LITTLE = lazy_re(
    r"(?i)\bfail(?:s|ed|ure)?\b|\berrors?\b|\btime(?:d|s)?[- ]?out\b|\bexceptions?\b|\bcrash|\bdied\b|\bexited\b"
    r"|\bunexpectedly\b|\bwent wrong\b|\bshould (?:never|not) (?:happen|reach|get here)|\bunreachable\b|\binternal\b"
    r"|\b(?:did|does) not (?:respond|complete|finish)\b|\bwaiting for\b"
    r"|\b(?:not|never) (?:become |get )?(?:ready|healthy|alive)\b|\bsignal\b"
    r"|\bhung\b|\bheartbeat\b"
    r"|\bsee (?:above|below|the)\b|\bkilled\b|\blost\b"
)
"""That something failed, not what is wrong."""
_GOES_ON = lazy_re(
    r"(?:[Mm]ust|[Ss]hould|Expected|Got|Found|It|This|That|They|Only|Supported|Valid|Allowed|Available|But)\b|\("
)
"""A sentence that says nothing without the one before it."""
_WORDS = 4
"""Words from which a message is a sentence."""
_NAMES = 3
_LONGEST = 300
_LEAST = 12


class MessageAdvice(NamedTuple):
    """A sentence of the message."""

    words: str
    orders: bool
    """It says what to do; otherwise what is wrong with the request."""
    line: int
    """Line of the output; 0 where there is none."""
    rank: int | None
    refused: bool = False
    """It only says that something is refused, or which assertion failed."""
    whole: str = ""
    """The whole message."""
    settings: tuple[str, ...] = ()
    """Names in it that look like settings: `context_parallel_size`, `--tp-size`."""
    repeats: bool = False
    """It stands in the message's first line, which every answer shows anyway, and names no value, call or command."""


def advice_in_message(errors: Iterable[FinalError], told: str = "") -> MessageAdvice | None:
    """Return the first sentence of the messages that says what to do, else the first that says what is wrong.

    An assertion without a message states by its line of code what should have held. Steps that the user has already
    taken (`told`) are skipped, and so is a check that refuses a value which it allows.
    """
    fault = refused = None
    for error in errors:
        checks = error.type.rpartition(".")[2] in _CHECKS
        for words in _sentences(error):
            if _ORDERS.search(words):
                if any(did in told for did in (*(f"{m[1]}(" for m in _CALLED.finditer(words)), *_SET.findall(words))):
                    continue
                return _row(error, words, orders=True)
            if _SHAPES.search(words) or refuses_what_it_allows(words):
                continue
            if fault is None and (_FAULT.search(words) or error.type == REFUSED_CALL):
                fault = _row(error, words)
            if refused is None and (_REFUSED.search(words) or (checks and settings(words))):
                refused = _row(error, words, refused=True)
        if refused is None and (held := _failed_assertion(error) or _written_refusal(error)):
            refused = _row(error, held, refused=True)
    return fault or refused


def refuses_what_it_allows(words: str) -> str:
    """The value that a check names as allowed and refuses all the same; empty for any other sentence."""
    found = _ALLOWS.search(words)
    if found is None:
        return ""
    got, allowed = _QUOTED.search(found["got"]), _QUOTED.findall(found["allowed"])
    return got[1] if got is not None and got[1] in allowed else ""


def _sentences(error: FinalError) -> Iterator[str]:
    """Each sentence; those that begin without their subject come with the one before them."""
    joined: list[str] = []
    for sentence in _SENTENCE.split(_text(error)):
        words = " ".join(plain(sentence, _LONGEST).split())
        bare = bool(joined and joined[-1]) and len(joined[-1].split()) < _WORDS and not _ORDERS.search(words)
        goes_on = bool(joined) and (bare or _GOES_ON.match(words)) and not _EVERYWHERE.search(joined[-1])
        if goes_on and len(joined[-1]) + len(words) < _LONGEST:
            joined[-1] += f" {words}"
        else:
            joined.append(words)
    yield from (words for words in joined if len(words) >= _LEAST and not _EVERYWHERE.search(words))


def _text(error: FinalError) -> str:
    """Return the message with the lines below it; an indented line continues the sentence above."""
    text = error.message[:4_000]
    for line in error.below:
        goes_on = line[:4].isspace() and not text.rstrip().endswith((".", "!", "?", ":"))
        text = f"{text.rstrip()} {line.strip()[:1_000]}" if goes_on else f"{text}\n{line[:4_000]}"
    return text


def _row(error: FinalError, words: str, *, orders: bool = False, refused: bool = False) -> MessageAdvice:
    whole = " ".join(plain(error.message, 2 * _LONGEST).split())
    raising = error.frames[-1].function if error.frames else ""
    names = tuple(name for name in settings(words) if name != raising)
    first = " ".join(plain(error.message.strip().partition("\n")[0], 2 * _LONGEST).split())
    return MessageAdvice(
        words,
        orders,
        error.line,
        error.rank,
        refused,
        whole,
        names,
        repeats=words in first and not _CONCRETE.search(words),
    )


def _written_refusal(error: FinalError) -> str:
    """Return the first sentence of a message that was written for exactly this case, or ""."""
    code = (error.frames[-1].code if error.frames else "") or error.code
    raises = _WRITTEN.match(code)
    if not error.frames or raises is None or _PYTHONS.search(error.frames[-1].file):
        return ""
    if (raises["type"] or "AssertionError") != error.type.rpartition(".")[2]:
        return ""
    if role_of(f"{error.type}: {error.message}", error.frames) != "own":
        return ""
    words = next(_sentences(error), "")
    vague = _SAYS_LITTLE.search(words) or _SHAPES.search(words) or refuses_what_it_allows(words)
    return "" if vague or len(words.split()) < _WORDS else words


def settings(words: str) -> tuple[str, ...]:
    """Names that are written as settings are, each once, the last part of those with dots."""
    found = (m[0].rpartition(".")[2] for m in _SETTING.finditer(_TAG.sub(" ", words)))
    return tuple(dict.fromkeys(name for name in found if not _NO_SETTING.search(name)))[:_NAMES]


def _failed_assertion(error: FinalError) -> str:
    """Return the condition that failed, such as `self.context_parallel_size == 1`, or ""."""
    native = _NATIVE.match(error.message.strip())
    if native is not None and not (error.told or _SAYS_LITTLE.search(native["held"])):
        return f"this does not hold: {plain(native['held'], _LONGEST).strip()}"
    if error.type != "AssertionError" or error.message.strip():
        return ""
    found = _ASSERT.match(error.code)
    return f"this does not hold: {plain(found['held'], _LONGEST).strip()}" if found is not None else ""
