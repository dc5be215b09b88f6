"""Errors in which nothing of distribution is seen: plain Python, pip, one device, serving. They get one line.

The words of the user and of the output decide, never names of directories: a program that shows no sign of several
processes, hosts or devices is not explained by them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dtdebug_taxonomy.failure.events import last_exception
from dtdebug_taxonomy.findings import Finding, plain
from dtdebug_taxonomy.frames import own_frame, short
from dtdebug_taxonomy.knowledge import Knowledge
from dtdebug_taxonomy.matching import clip_lines
from dtdebug_taxonomy.recognise import is_distributed
from dtdebug_taxonomy.snapshot import ExceptionInfo, Snapshot, walk

_SIGNS = re.compile(
    r"""(?ix)
      (?-i:['"](?:LOCAL_|WORLD_)?(?:RANK|SIZE)['"])
    | torchrun | torch\.distributed | torch[ _-]?elastic | \[\d,\d{1,5}\]<std | \bstage[ _-]?3 | \bds_
    | (?<!\bbe\ )\bbroadcast | \bmore\ than\ one\b
    | \b(?:on|with)\ (?:two|three|four|eight|several|many|\d{1,3})\b(?=[,.;]|$)
    | \b(?:two|three|four|eight|several|both|all)\ of\ them | \bin\ the\ cluster\b
    | \b(?:main|head|worker|master|compute|far)[ -](?:node|machine|host|side)\b | \bremote\ (?:node|machine|side)\b
    | \bthe\ others\ (?:wait|hang|stay)
    | \bexecutors\b | \b(?:pp|tp|vp|dp|ep|cp)\ ?[=>]\ ?\d
    | \bdistributed(?!\ (?:under|in\ the\ hope)) | \bddp | \bfsdp
    | nccl | rccl | hccl | oneccl | \bgloo | \bmpi(?:\b|run|exec|4py|ch|_) | open-?mpi | horovod | \bhvd\b
    | deep-?\ ?speed | \bzero-?[123]\b | \bzero[ -]stage | megatron | colossal | \baccelerate\ (?:launch|config)
    | \baccelerator(?:\.|\() | world[_ ]?size | (?:local|node|global|my)[_ ]rank | master_(?:addr|port)
    | \[(?:rank|default)\d | (?<!of\ )(?<!expected\ )(?<!equal\ )(?<!be\ )(?<!has\ )\brank[ :=#-]?\d
    | \b(?:each|every|one|other|all|per|which|this|same|both)\ ranks?\b | \branks\b | \brank\ (?:zero|one|two)
    | nproc | num_processes | data-?\ ?parallel | mirrored | parameter[- _]?servers? | TF_CONFIG | tf\.distribute
    | multi[-_ ]?(?:gpu|node|worker|process|host|machine)s? | all[-_]?(?:reduce|gather|to[-_]all) | reduce[-_]?scatter
    | \bray(?:\.|\b) | slurm | \bsrun | \bsbatch | rendezvous | c10d | process[ _-]group
    | elastic\ (?:training|agent|launch)
    | \bpods?\b | (?:tensor|pipeline|expert|context|sequence|model)[-_ ]parallel | dtensor | device_?mesh | nvlink
    | infiniband | \brdma | \bcollectives?\b | \bcross-?replica | \breplica | \bxla\b | \btpu\b | jax\.distributed
    | distributedsampler | \bsharded\b | torch\.multiprocessing | mp\.spawn | notebook_launcher | estimator
    | (?<!used\ by\ )\b(?!1\b)(?!0\b)
      (?:\d{1,5}|two|three|four|eight|several|multiple|many|all|both|other|second|different|more)
      (?:\ ?x)?(?:,?[ -](?:(?![gmt]i?b\b)\w{1,12}\ )?)?
      (?:gpu|node|machine|host|card|process(?:e|\b)|server|computer|device)s?
    | \b(?:[2-9]|\d\d\d?|two|three|four|eight|sixteen|several|multiple)\ ?[x*]?\ ?(?:nvidia\ |amd\ )?
      (?:[abhv]\d\d0|a[3-6]000|gb?[2-3]00|mi\d{3}|l40s?|rtx|\d0[5-9]0|tesla|titan)s?\b
    | \b(?:per|each|every)[ -](?:gpu|device|card|node|host|machine)\b | \bpipeline\ stages? | \bdistribution\ strateg
    | \b(?:cuda|gpu):[1-9]\b
    | \b(?:nodes|gpus|machines|hosts|cards)\b | byteps | fairscale | fairseq | peer[- ]to[- ]peer | \bp2p\b
    | \bhang|\bhung\b|\bstuck\b|\bdeadlock|\bfreez|\bfroze | verl\b | openrlhf | torchtitan | \bwatchdog
    """
)
_TRAINING = re.compile(
    r"(?i)\b(?:train|fine-?tun|epoch|loss\b|workers?\b|chief|check-?point|optimi[sz]er|gradient|gpu|cuda|backward|rank)"
)
"""Whoever asks about training asks about distributed training, if nothing speaks against it."""
_PACKAGES = re.compile(
    r"torch[/\\](?:distributed|nn[/\\]parallel|multiprocessing[/\\]spawn)|torch[/\\]csrc[/\\]distributed"
    r"|(?:-packages[/\\]|(?<![\w/\\]))(?:deepspeed|horovod|colossalai|megatron|apex|fairscale|byteps)[/\\]"
    r"|tensorflow[/\\]python[/\\]distribute|accelerate[/\\]commands[/\\]launch"
)
"""Libraries below an installation whose frames are a sign."""
_PATH = re.compile(r"(?:~|\.{1,2})?[\w.@+-]{0,100}/[^\s\"',:;)]{0,300}")
_DEVICE = r"\w{1,12}(?::\d{1,3})?"
_BESIDE_CPU = re.compile(
    rf"at least two devices, (?:(?:cpu|meta)(?:,? and |, ){_DEVICE}|{_DEVICE}(?:,? and |, )(?:cpu|meta)\b)"
)
"""A tensor that was left on the CPU needs one device only."""
_SIZE = (
    r"(?i)\b(?:world_?size|(?:tensor|pipeline|data)_parallel_size|num_processes|nproc[_-]per[_-]node)['\"]?[=: ]{1,2}"
)
_ONE, _MORE = re.compile(rf"{_SIZE}1\b"), re.compile(rf"{_SIZE}(?:[2-9]|\d\d)")
"""A server on one device prints words of distribution all the same."""
_ALONE = re.compile(
    r"(?i)\b(?:on|with|using|have) (?:just |only )?(?:my |a |the |one of my )?(?:one|single|1|own) (?:\w{2,12} )?"
    r"(?:gpu|card|device|laptop|computer)\b|\bon my laptop\b|\bsingle (?:RTX|GPU)\b"
)
"""Words of a user who says how much there is: one."""
_ERROR = re.compile(
    r"(?i)^\W{0,8}(?:\S{1,60}:\ ?){0,2}(?:fatal|error|critical)\b.{0,300}"
    r"|^.{0,80}\b(?:command not found|No such file or directory)"
)
_GIT = re.compile(r"(?i)git@|\b(?:github|gitlab|bitbucket)\.(?:com|org)\b|Could not read from remote repository")
"""A remote shell that git opens is not that of a launcher."""
_LINES, _SHOWN = 4_000, 120
"""Lines that are looked at from the end, characters of a message that are shown."""


def is_foreign(knowledge: Knowledge, snapshot: Snapshot, findings: Sequence[Finding]) -> bool:
    """Nothing speaks of several processes, hosts or devices, nor does the user speak of training."""
    if _TRAINING.search(snapshot.situation) and not _ALONE.search(snapshot.situation):
        return bool(ordinary(knowledge, snapshot, findings)) and _is_bare(knowledge, snapshot, findings)
    return _is_bare(knowledge, snapshot, findings)


def _is_bare(knowledge: Knowledge, snapshot: Snapshot, findings: Sequence[Finding]) -> bool:
    if (snapshot.verdict is not None and snapshot.verdict.names_ranks) or snapshot.ranks or is_distributed(snapshot):
        return False
    if _GIT.search(snapshot.output):
        findings = [f for f in findings if not f.evidence.startswith("ssh-")]
    return not (any(_is_sign(knowledge, f) for f in findings) or _signs(snapshot))


def ordinary(knowledge: Knowledge, snapshot: Snapshot, findings: Sequence[Finding]) -> str:
    """The error of a program that `is_foreign`, in one line; '' where it names none."""
    if not (snapshot.output.strip() or snapshot.exception) and _ALONE.search(snapshot.situation):
        return "What is described is a program of one process on one device; nothing of distribution is seen in it."
    error = _raised(snapshot.exception) or _last_error(snapshot.output) or _last_error(snapshot.situation)
    error = error or _matched(knowledge, snapshot, findings)
    return f"An ordinary error of the program: {error}; nothing of distribution is seen in it." if error else ""


def _is_sign(knowledge: Knowledge, f: Finding) -> bool:
    """An answer, or a message that only programs of several processes print."""
    if f.values or f.scores:
        return f.source == "answered"
    found = knowledge.evidence[f.evidence]
    if found.generic or found.catch_all or (f.source == "said" and not found.text):
        return False
    return bool(found.names or found.symptoms or found.role == "cascade")  # a launcher speaks of its processes


def _signs(snapshot: Snapshot) -> bool:
    """Whether anything speaks of several processes, hosts or devices."""
    raised = [*walk(snapshot.exception)]
    if any(i.rank is not None or i.exit_code is not None or i.signal for i in raised):
        return True
    frames = "\n".join(f.file for info in raised for f in info.frames)
    said = [f"{info.type}: {info.message[:8_000]}" for info in raised]
    texts = [clip_lines(text) for text in (snapshot.situation, snapshot.output, snapshot.cell, *said)]
    if _PACKAGES.search(frames) or any(_PACKAGES.search(text) for text in texts):
        return True
    if any(_ONE.search(text) for text in texts) and not any(_MORE.search(text) for text in texts):
        return bool(_SIGNS.search(snapshot.situation))
    return any(_SIGNS.search(_PATH.sub(" ", _BESIDE_CPU.sub(" ", text))) for text in texts)


def _raised(exception: ExceptionInfo | None) -> str:
    info = next(walk(exception), None)
    if info is None:
        return ""
    frame = own_frame(info.frames)
    place = f" at {short(frame.file)}:{frame.line}" if frame is not None else ""
    return f"{_short(info.type.rsplit('.', 1)[-1], info.message)}{place}"


def _last_error(text: str) -> str:
    """The last exception of a text with the user's own line, else its first line that reports an error."""
    lines = [line[:1_000].rstrip() for line in text.split("\n")[-_LINES:]]
    if (raised := last_exception("\n".join(lines))) is not None:
        frame = own_frame(raised.frames)
        place = f" at {short(frame.file)}:{frame.line}" if frame is not None else ""
        return f"{_short(raised.type.rsplit('.', 1)[-1], raised.message)}{place}"
    error = next((m[0] for line in lines if (m := _ERROR.match(line))), "")
    return _short(error.strip(), "") if error else ""


def _matched(knowledge: Knowledge, snapshot: Snapshot, findings: Sequence[Finding]) -> str:
    """The first line that a general message of a failure is on."""
    failed = (f for f in findings if f.source == "printed" and not f.values and not f.scores)
    rows = [(f.line, f.words) for f in failed if knowledge.evidence[f.evidence].symptoms]
    line, words = min((row for row in rows if row[0]), default=(0, ""))
    lines = clip_lines(snapshot.output).split("\n")
    known = not snapshot.first_lines and 0 < line <= len(lines)
    return _short(lines[line - 1].strip() if known else words, "") if words else ""


def _short(kind: str, message: str) -> str:
    words = " ".join(plain(f"{kind}: {message}" if message.strip() else kind, 1_000).split())
    return words if len(words) <= _SHOWN else f"{words[: _SHOWN - 3]}..."
