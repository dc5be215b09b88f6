"""Errors in which nothing of distribution is seen: plain Python, pip, one device, serving. They get one line.

The words of the user and of the output decide, never names of directories: a program that shows no sign of several
processes, hosts or devices is not explained by them.
"""

from __future__ import annotations

from collections.abc import Sequence

from dtdebug_taxonomy.incident import Incident
from dtdebug_taxonomy.inference.finding import Finding
from dtdebug_taxonomy.knowledge.loader import Knowledge
from dtdebug_taxonomy.logs.event_reader import last_exception
from dtdebug_taxonomy.logs.layer_reports import layer_report
from dtdebug_taxonomy.logs.message_advice import advice_in_message
from dtdebug_taxonomy.model.snapshot import ExceptionInfo, walk
from dtdebug_taxonomy.stacks.frames import own_frame, spell_place
from dtdebug_taxonomy.text.lazy_re import lazy_re
from dtdebug_taxonomy.text.pattern_matcher import clip_lines, plain

_TRAINING = lazy_re(
    r"(?i)\b(?:train|fine-?tun|epoch|loss\b|workers?\b|chief|check-?point|optimi[sz]er|gradient|gpu|cuda|backward|rank)"
)
"""Words about training, which is taken for distributed training unless something contradicts it."""
_COMPLAINS = lazy_re(
    r"(?i)\b(?:fail|error|hang|stuck|freez|crash|slow|wrong|nan\b|not\b|cannot|never|worse|differ|diverg|only"
    r"|drop|lower|higher|bad|why|kill|stop|wait|leak|memory|oom|issue|problem|unable|incorrect|mismatch|dies|died"
    r"|time[sd]? ?out|too\b|no\b|random|unexpected|broken|explod|spike|lost|missing|same|zero|inf\b"
    r"|jumps\b|twice\b|doubled\b"
    r"|scal(?:es?|ed|ing) linearly)"
    r"|n.t\b|\b\d[\d.]* ?(?:x|times)\b|\?\s*$"
)
"""Words of a complaint; a request for a log is not one."""
_ALONE = lazy_re(
    r"(?i)\b(?:on|with|using|have) (?:just |only )?(?:my |a |the |one of my )?(?:one|single|1|own) (?:\w{2,12} )?"
    r"(?:gpu|card|device|laptop|computer)\b|\bon my laptop\b|\bsingle (?:RTX|GPU)\b"
    r"|\b(?:on|with|using) (?:my|an?|one) (?:nvidia |geforce )?[RG]TX ?\d{3,4}\b"
)
"""Words of a user who says how much there is: one."""
_ERROR = lazy_re(
    r"(?i)^\W{0,8}(?:\S{1,60}:\ ?){0,2}(?:fatal|error|critical)\b.{0,300}"
    r"|^.{0,80}\b(?:command not found|No such file or directory)"
)
_SERVICE = lazy_re(
    r"(?im)^(?:DETAIL|HINT): {2}|\] \d{1,6}#\d{1,6}: "
    r"|\b(?:gunicorn|uwsgi|uvicorn|nginx|apache2?|httpd|django|flask|fastapi|celery|rabbitmq|kafka|rdkafka|redis|elastic-?search|opensearch|solr|cassandra|cockroach\w{0,2}|postgres\w{0,4}"
    r"|mysql|mongo\w{0,20}|selenium|playwright|webpack|npm|jenkins|grafana|prometheus|ollama|discord|telegram)\b"
)
"""Services and their tools, which have workers, watchdogs and time-outs too."""
_DEEP = lazy_re(
    r"(?i)\b(?:torch\w{0,20}|tensorflow|keras|jax|cuda|gpus?|nccl|gloo|mpi\w{0,4}|horovod|deepspeed|train(?:s|ed|ing|er)?|epochs?"
    r"|ranks?|vllm|sglang|ray|slurm|tensor|megatron|fsdp|ddp|fine-?tun\w{1,4})\b"
)
"""Words that services of other kinds never use."""
_PLAINLY = (
    (
        lazy_re(
            r"(?im)^(?:[\w./-]{1,60}: )?(?:(?:line )?\d{1,6}:? {1,4}){0,3}?(?:\[\d{1,3}\][ +-]{1,4})?"
            r"\d{0,9} {0,4}Killed\b"
        ),
        "killed from outside (SIGKILL), most often because memory ran out: `dmesg -T | grep -i kill` names it",
    ),
    (
        lazy_re(r"Too many open files"),
        "more files and sockets are open than allowed: see `ulimit -n`, and raise it (`ulimit -n 65536`) or close them",
    ),
    (
        lazy_re(r"Reason: {1,20}OOMKilled"),
        "the container used more memory than its limit: raise `resources.limits.memory`, or use less",
    ),
    (
        lazy_re(r"ssh: connect to host .{1,80} Connection refused"),
        "no ssh server listens at that port of the host, or a firewall refuses the connection",
    ),
    (
        lazy_re(r"ssh: connect to host .{1,80} (?:No route to host|Network is unreachable)"),
        "no network leads to the host: see its address, `ip route`, and whether it is up",
    ),
    (
        lazy_re(r"ssh: connect to host .{1,80} timed out"),
        "the host does not answer at that port: a wrong address, or a firewall that drops the connection",
    ),
)
"""Lines that say nothing of their cause to who does not know them."""
_ANYBODYS = (
    (
        lazy_re(
            r"(?i)git@|\b(?:github|gitlab|bitbucket)\.(?:com|org)\b|Could not read from remote repository"
            r"|^ssh: connect to host .{1,80}: (?:Connection refused|No route to host|Network is unreachable)\s*\Z"
            r"|\brsync(?: error)?:"
        ),
        "ssh-",
    ),
    (lazy_re(r"Last State: {1,20}Terminated|Reason: {1,20}OOMKilled|Process completed with exit code \d"), "mem-"),
    (lazy_re(r"(?m)^(?:.{0,80}: .{0,20})?Aborted {1,20}\(core dumped\)"), "sig-"),
)
"""A remote shell that git or a person opens, the description of a pod, the end of a step of CI: none is a sign of
a launcher."""
_LINES, _SHOWN, _SERVICES_TEXT = 4_000, 120, 1 << 20
"""Limits: trailing lines searched, characters of a message shown, characters of a text searched whole."""


def complains(text: str) -> bool:
    """True if the words complain about something."""
    return _COMPLAINS.search(text) is not None


def is_foreign(knowledge: Knowledge, incident: Incident, findings: Sequence[Finding]) -> bool:
    """True if the incident shows no second process, host or device, and the user does not mention training."""
    snapshot, situation = incident.snapshot, incident.prose.bilingual
    if _is_service(f"{situation}\n{snapshot.output}") and not (snapshot.ranks or incident.is_distributed):
        return True
    if _TRAINING.search(situation) and complains(situation) and not _ALONE.search(situation):
        return bool(ordinary(knowledge, incident, findings)[0]) and _is_bare(knowledge, incident, findings)
    return _is_bare(knowledge, incident, findings)


def _is_service(text: str) -> bool:
    """It speaks of a web server, a queue or a data base, and of nothing that trains."""
    return len(text) < _SERVICES_TEXT and _SERVICE.search(text) is not None and _DEEP.search(text) is None


def _is_bare(knowledge: Knowledge, incident: Incident, findings: Sequence[Finding]) -> bool:
    snapshot = incident.snapshot
    if (snapshot.verdict is not None and snapshot.verdict.names_ranks) or snapshot.ranks or incident.is_distributed:
        return False
    for pattern, prefix in _ANYBODYS:
        if pattern.search(snapshot.output):
            findings = [f for f in findings if not f.evidence.startswith(prefix)]
    return not (any(_is_sign(knowledge, f) for f in findings) or incident.mentions_several)


def ordinary(knowledge: Knowledge, incident: Incident, findings: Sequence[Finding]) -> tuple[str, bool]:
    """Return the error of a program that `is_foreign` in one line, or "", and whether that line says its cause."""
    snapshot = incident.snapshot
    if not (snapshot.output.strip() or snapshot.exception) and _ALONE.search(snapshot.situation):
        told = "What is described is a program of one process on one device; nothing of distribution is seen in it."
        return told, False
    error = _error_at_hand(snapshot.exception) or _last_error(snapshot.output, incident)
    error = error or _last_error(snapshot.situation) or _known_message(knowledge, incident, findings)
    if error.startswith("terminate called") and (said := layer_report(incident.log.lines)) is not None:
        error = _short(said.message, "")
    for pattern, means in _PLAINLY:
        if not snapshot.exception and (found := pattern.search(snapshot.output)):
            before, after = snapshot.output[: found.end()], snapshot.output[found.end() :]
            line = f"{before.rpartition(chr(10))[2]}{after.partition(chr(10))[0]}"
            return f"{_short(line.strip(), '')}: {means}. Nothing of distribution is seen in it.", True
    if not error:
        return "", False
    own = advice_in_message(incident.errors)
    order = f" The message says what to do: {own.words}" if own and own.orders and own.words not in error else ""
    kind = "A warning" if "Warning: " in error else "An ordinary error"
    return f"{kind} of the program: {error}; nothing of distribution is seen in it.{order}", bool(order)


def _is_sign(knowledge: Knowledge, f: Finding) -> bool:
    """An answer, or a message that only programs of several processes print."""
    if f.values or f.scores:
        return f.source == "answered"
    found = knowledge.evidence[f.evidence]
    if found.generic or found.catch_all or (f.source == "said" and not found.text):
        return False
    return bool(found.names or found.symptoms or found.role == "cascade")  # a launcher speaks of its processes


def _error_at_hand(exception: ExceptionInfo | None) -> str:
    info = next(walk(exception), None)
    if info is None:
        return ""
    frame = own_frame(info.frames)
    place = f" at {spell_place(frame.file, frame.line)}" if frame is not None else ""
    return f"{_short(info.type.rsplit('.', 1)[-1], info.message)}{place}"


def _last_error(text: str, incident: Incident | None = None) -> str:
    """The last exception of a text with the user's own line, else its first line that reports an error.

    Without a line where the log holds that exception and can't tell its lines from those of another process.
    """
    lines = [line[:1_000].rstrip() for line in text.split("\n")[-_LINES:]]
    raised = last_exception("\n".join(lines))
    if raised is not None and not raised.type.endswith("Warning"):
        read = incident.log.events.raised if incident is not None else ()
        mixed = any((r.type, r.message, r.frames) == (raised.type, raised.message, ()) for r in read)
        frame = own_frame(raised.frames) if not mixed else None
        place = f" at {spell_place(frame.file, frame.line)}" if frame is not None else ""
        return f"{_short(raised.type.rsplit('.', 1)[-1], raised.message)}{place}"
    error = next((m[0] for line in lines if (m := _ERROR.match(line))), "")
    return _short(error.strip(), "") if error else ""


def _known_message(knowledge: Knowledge, incident: Incident, findings: Sequence[Finding]) -> str:
    """The first line that a general message of a failure is on."""
    failed = (f for f in findings if f.source == "printed" and not f.values and not f.scores)
    snapshot, bearing = incident.snapshot, incident.relevance
    rows = [(f.line, f.words) for f in failed if knowledge.evidence[f.evidence].symptoms]
    rows = [row for row in rows if not (row[0] and bearing.is_trained_after(row[0]))]
    line, words = min((row for row in rows if row[0]), default=(0, ""))
    lines = clip_lines(snapshot.output).split("\n")
    known = not snapshot.first_lines and 0 < line <= len(lines)
    return _short(lines[line - 1].strip() if known else words, "") if words else ""


def _short(kind: str, message: str) -> str:
    words = " ".join(plain(f"{kind}: {message}" if message.strip() else kind, 1_000).split())
    if len(words) > _SHOWN:
        return f"{words[: _SHOWN - 3]}..."
    return words if words.endswith("...") else words.removesuffix(".")
