"""Reads what NCCL's RAS prints: its status as text or JSON, the events of its monitoring mode, its diagnostics."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from dtdebug.recorded.nccl_ras.status import Communicator, Counted, Member, Mismatch, RasError, Status
from dtdebug.storage import budget

_MOST = 1 << 18
_COMM = re.compile(r"#(?P<name>\d{1,6}-\d{1,6}) \((?P<hash>[0-9a-f]{1,16})\) (?P<kind>INCOMPLETE|MISMATCH|ERROR)")
_MEMBER = re.compile(
    r"Rank (?P<rank>\d{1,7})(?: has status (?P<status>\w{1,30})| has launched up to operation (?P<count>\d{1,19})"
    r"| has not launched any operations(?P<none>)| reported (?P<error>.{1,80}?))? -- "
    r"(?:GPUs? (?P<gpu>[\d,( )NVMLdev]{1,60}?) managed by process (?P<pid>\d{1,9}) on node (?P<host>\S{1,80})"
    r"|\[process information not found\])\s*\Z"
)
_PROCESS = re.compile(r"Process (?P<pid>\d{1,9}) on node (?P<host>\S{1,80}) managing GPUs? (?P<gpu>.{1,60})\Z")
_MISSING = re.compile(r"Missing communicator data from (?P<number>\d{1,7}) (?P<what>job process|rank)")
_THE_MISSING = re.compile(r"The missing ranks?: (?P<ranks>[\d, -]{1,2000})\Z")
_DEAD = re.compile(r"(?P<number>\d{1,7}) job process(?:es)? (?:is|are) considered dead")
_GROUP = re.compile(
    r"(?P<number>\d{1,7}) ranks? (?:have|has) (?:status (?P<status>\w{1,30})"
    r"|launched up to operation (?P<count>\d{1,19})|not launched any operations(?P<none>))"
)
_DIFFER = re.compile(r"Communicator ranks have different (?:(?P<op>\w{1,30}) operation|status)")
_HEAD = re.compile(r"Group +Comms +Nodes +Ranks +Ranks +Ranks +Status +Errors")
_TIMEOUTS = re.compile(r"Encountered (?P<number>\d{1,7}) communication time")
_EVENT = re.compile(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\] PEER_(?P<what>[A-Z_]{1,30}): (?P<process>Process .{1,200})")
_EVENT_KEY = re.compile(r'"event": ?"PEER_')
_MONITOR = "RAS Monitor Mode"
_DIAGNOSTICS = re.compile(
    r"(?:\S{1,255}:\d{1,9} )?NCCL DIAG (?:\[(?P<tag>OK|INFO)\] +(?P<check>[^:]{1,60}): (?P<words>.{1,400}))?"
)
_VERSION = re.compile(r"NCCL version (?P<version>\d[\w.+-]{0,30})")
_TABLE = re.compile(
    r"\s{0,8}(?P<group>\d{1,6})\s{1,12}(?P<comms>\d{1,7})\s{1,12}[\d-]{1,12}\s{1,12}[\d-]{1,15}\s{1,12}(?P<size>\d{1,7})"
    r"\s{1,12}\d{1,8}\s{1,12}(?P<status>[A-Z,]{2,60})\s{1,12}(?P<errors>[A-Z,]{2,60})\s*\Z"
)
_LISTS = re.compile(r"Errors|Warnings")
"""Headings of the lists of what is wrong."""
_HEADS = re.compile(r"={3,80}|[A-Z]{2,30}")
"""Their rules, and the kind of the entries below: `DEAD`."""
_SHOWN, _DIGITS = 120, 7
_CUT = "its list of errors is not in the text"
_TOTALS = re.compile(r"\s{0,8}(\d{1,7})\s{1,12}(\d{1,7})\s{1,12}(\d{1,7})\s{1,12}(\d{1,7})\s{1,12}(\d{1,7})\s*\Z")


def is_status(text: str) -> bool:
    """True if a text is, or contains near its beginning, a status of RAS."""
    head = text[: 16 << 10]
    if ('"communicators"' in head and '"nccl_version"' in head) or _EVENT_KEY.search(head):
        return True
    if head.lstrip().startswith(_MONITOR) or _is_diagnostics(head):
        return True
    return ("Job summary\n===" in head and "Communicators..." in text) or bool(
        _HEAD.search(head)
        or (_COMM.search(head) and ("Communicator ranks have different" in text or "Missing communicator data" in text))
    )


def _is_diagnostics(head: str) -> bool:
    """True for a report of diagnostics alone; one in a job's output is a part of that."""
    lines = [line for line in head.splitlines()[:-1] if line.strip()]
    return bool(lines) and all(map(_DIAGNOSTICS.match, lines))


def read_status(text: str) -> list[Status]:
    """Return the statuses of a text, each of one query; raises RasError."""
    if text.lstrip()[:1] == "{" and ('"communicators"' in text or _EVENT_KEY.search(text)):
        if budget.json_memory(text.encode(errors="replace")) > budget.MEMORY // 2:  # twice, as tables and as a status
            raise RasError("holds more than the status of a job does")
        documents = list(_documents(text))
        if not all(d.event or d.nccl_version or d.communicators for d in documents):
            raise RasError("is neither a status nor an event of NCCL's RAS")
        events = _of_events([d for d in documents if d.event])
        return [*map(_of_json, (d for d in documents if not d.event)), *events]
    parts = re.split(r"(?m)^(?=NCCL version \d)", text)
    if len(parts) < 2:
        parts = re.split(r"(?m)^(?=Job summary$)", text)
    found = [status for part in parts if (status := _of_text(part.splitlines())) is not None]
    if not found:
        raise RasError("is no status of NCCL's RAS")
    return found


def _of_text(lines: Sequence[str]) -> Status | None:
    """Return the status of one query; None if there is nothing of RAS."""
    reader = _Reader()
    for line in lines:
        reader.take(line.rstrip())
    return reader.done()


class _Comm:
    def __init__(self, name: str, size: int | None) -> None:
        self.name, self.size = name, size
        self.missing: list[Member] = []
        self.missing_number = 0
        self.mismatches: list[tuple[str, list[tuple[str, int, list[Member]]]]] = []
        self.errors: list[str] = []
        self.failed: list[Member] = []

    def build(self) -> Communicator:
        return Communicator(
            name=self.name, size=self.size, missing=tuple(self.missing), missing_number=self.missing_number,
            mismatches=tuple(
                Mismatch(what=what, groups=tuple(Counted(value=v, number=n, members=tuple(m)) for v, n, m in groups))
                for what, groups in self.mismatches
            ),
            errors=tuple(self.errors), failed=tuple(self.failed),
        )  # fmt: skip


class _Reader:
    """Reads line by line."""

    def __init__(self) -> None:
        self._sizes: dict[str, int] = {}
        self._comms: dict[str, _Comm] = {}
        self._comm: _Comm | None = None
        self._kind = ""
        self._known = False
        self._number = 0
        self._flags: list[str] = []
        self._dead: list[Member] = []
        self._silent: list[Member] = []
        self._counts = {"dead": 0, "silent": 0, "timeouts": 0}
        self._version = ""
        self._totals: tuple[int, int, int] | None = None
        self._watched = False
        self._listed = self._tabled = False
        self._summed = False
        self._unread = ""
        self._checks: dict[str, list[str]] = {"OK": [], "INFO": []}

    def take(self, line: str) -> None:
        text = line.strip()
        if not text:
            self._comm, self._kind = None, ""
        elif self._is_of_monitor(text) or self._is_of_diagnostics(text):
            self._known = True
        elif m := _COMM.match(text):
            self._known = True
            name = f"#{m['name']}"
            size = self._sizes.get(m["name"].partition("-")[0])
            self._comm, self._kind = self._comms.setdefault(name, _Comm(name, size)), m["kind"]
        elif self._comm is not None:
            self._of_comm(self._comm, text)
        elif m := _MISSING.match(text):
            self._known, self._kind = True, "silent"
            self._counts["silent"] = int(m["number"])
        elif m := _DEAD.match(text):
            self._known, self._kind = True, "dead"
            self._counts["dead"] = int(m["number"])
        elif m := _PROCESS.match(text):
            (self._dead if self._kind == "dead" else self._silent).append(_process(m))
        elif m := _TIMEOUTS.match(text):
            self._counts["timeouts"] = int(m["number"])
        elif m := _TABLE.match(line):
            self._known = True
            self._sizes[m["group"]] = int(m["size"])
            self._number += int(m["comms"])
            self._flags += [m["errors"]] if m["errors"] != "OK" else []
        elif (m := _TOTALS.match(line)) and not self._number:
            self._totals = int(m[1]), int(m[4]), int(m[5])
        elif m := _VERSION.match(text):
            self._version = m["version"]
        else:
            self._of_lists(text)

    def _of_lists(self, text: str) -> None:
        """Note which lists there are, and the first line of them that is not understood."""
        if text == "Job summary":
            self._known = self._summed = True
        self._listed |= _LISTS.fullmatch(text) is not None
        self._tabled |= _HEAD.match(text) is not None
        is_row = self._tabled and text[:1].isdecimal()
        if is_row or (self._listed and not (_LISTS.fullmatch(text) or _HEADS.fullmatch(text))):
            self._unread = self._unread or f"not understood is {text[:_SHOWN]!r}"

    def _is_of_monitor(self, text: str) -> bool:
        m = _EVENT.match(text)
        if m is None and not text.startswith(_MONITOR):
            return False
        self._watched = True
        if m is not None and m["what"] == "DEAD" and (process := _PROCESS.match(m["process"])) is not None:
            self._dead.append(_process(process))
            self._counts["dead"] += 1
        return True

    def _is_of_diagnostics(self, text: str) -> bool:
        m = _DIAGNOSTICS.match(text)
        if m is not None and m["tag"]:
            self._checks[m["tag"]].append(m["check"] if m["tag"] == "OK" else f"{m['check']}: {m['words']}")
        return m is not None

    def _of_comm(self, comm: _Comm, text: str) -> None:
        if m := _MISSING.match(text):
            comm.missing_number = int(m["number"])
        elif m := _THE_MISSING.match(text):
            comm.missing += [Member(rank=rank) for rank in _numbers(m["ranks"])]
        elif m := _DIFFER.match(text):
            comm.mismatches.append(
                (m["op"] if m["op"] not in (None, "collective") else "" if m["op"] else "status", [])
            )
        elif m := _MEMBER.match(text):
            member = Member(
                rank=int(m["rank"]), host=m["host"] or "", pid=int(m["pid"]) if m["pid"] else None, gpu=m["gpu"] or ""
            )
            value = m["status"] or m["count"] or ("0" if m["none"] is not None else None)
            if self._kind == "INCOMPLETE":
                comm.missing.append(member)
            elif self._kind == "ERROR":
                comm.failed.append(member)
                comm.errors += [f"rank {member.rank} reported {m['error']}"] if m["error"] else []
            elif value is not None and comm.mismatches:
                comm.mismatches[-1][1].append((value, 1, [member]))
            elif comm.mismatches and comm.mismatches[-1][1]:
                comm.mismatches[-1][1][-1][2].append(member)
        elif (m := _GROUP.match(text)) and comm.mismatches:
            value = m["status"] or m["count"] or "0"
            comm.mismatches[-1][1].append((value, int(m["number"]), []))
        elif self._kind == "ERROR":
            comm.errors.append(text[:200])

    def done(self) -> Status | None:
        if not self._known:
            return None
        nodes, processes, gpus = self._totals or (None, None, None)
        empty = (
            f"what is wrong with communicator {c.name} is not understood"
            for c in self._comms.values()
            if not (c.missing or c.missing_number or c.mismatches or c.errors)
        )
        cut = _CUT if self._summed and not self._listed else ""
        return Status(
            version=self._version,
            communicators=tuple(comm.build() for comm in self._comms.values()),
            number=self._number,
            nodes=nodes,
            processes=processes,
            gpus=gpus,
            dead=tuple(self._dead),
            dead_number=self._counts["dead"],
            silent=tuple(self._silent),
            silent_number=self._counts["silent"],
            flags=tuple(self._flags),
            timeouts=self._counts["timeouts"],
            watched=self._watched,
            passed=tuple(self._checks["OK"]),
            issues=tuple(self._checks["INFO"]),
            unread=self._unread or next(empty, "") or cut,
        )


def _process(found: re.Match[str]) -> Member:
    return Member(pid=int(found["pid"]), host=found["host"], gpu=found["gpu"])


def _numbers(text: str) -> Iterator[int]:
    """Yield the ranks of a list such as `1, 4-7`."""
    for part in text.replace(" ", "").split(","):
        first, _, last = part.partition("-")
        if first.isdecimal() and (not last or last.isdecimal()) and max(len(first), len(last)) <= _DIGITS:
            begin, end = int(first), int(last or first)
            yield from range(begin, min(end + 1, begin + _MOST))


class _State(msgspec.Struct):
    init_state: int = 0
    async_error: int = 0
    finalize_called: bool = False
    unresponsive: bool = False
    considered_dead: bool = False


class _Rank(msgspec.Struct):
    rank: int
    host: str = ""
    pid: int | None = None
    cuda_dev: int | None = None
    status: _State = msgspec.field(default_factory=_State)
    collective_counts: dict[str, int] = {}


class _Comms(msgspec.Struct):
    hash: str = ""
    size: int | None = None
    ranks: list[_Rank] = []
    missing_ranks: list[_Rank] = []


class _Ras(msgspec.Struct):
    timeouts_count: int = 0


class _Peer(msgspec.Struct):
    host: str = ""
    pid: int | None = None
    cuda_devs: list[int] = []


class _Document(msgspec.Struct):
    communicators: list[_Comms] = []
    event: str = ""
    peer: _Peer = msgspec.field(default_factory=_Peer)
    nccl_version: str = ""
    ras: _Ras = msgspec.field(default_factory=_Ras)


def _documents(text: str) -> Iterator[_Document]:
    import json

    decoder, at = json.JSONDecoder(), 0
    try:
        while at < len(text):
            if text[at].isspace():
                at += 1
                continue
            found, at = decoder.raw_decode(text, at)
            yield msgspec.convert(found, _Document)
    except (ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise RasError(f"is not JSON of NCCL's RAS: {error}") from None


def _of_json(document: _Document) -> Status:
    comms, dead, silent = [], {}, {}
    for each in document.communicators:
        missing = tuple(_member(r) for r in each.missing_ranks)
        for r in each.missing_ranks:
            if r.status.considered_dead:
                dead[r.host, r.pid] = msgspec.structs.replace(_member(r), rank=None)
            elif r.status.unresponsive:
                silent[r.host, r.pid] = msgspec.structs.replace(_member(r), rank=None)
        failed = [r for r in each.ranks if r.status.async_error or r.status.init_state not in (0, 7)]
        comms.append(
            Communicator(
                name=each.hash,
                size=each.size,
                missing=missing,
                missing_number=len(missing),
                mismatches=tuple(_mismatches(each.ranks)),
                errors=tuple(f"rank {r.rank} has error {r.status.async_error or r.status.init_state}" for r in failed),
                failed=tuple(_member(r) for r in failed),
            )
        )
    everyone = {(r.host, r.pid) for c in document.communicators for r in (*c.ranks, *c.missing_ranks)}
    return Status(
        version=document.nccl_version, communicators=tuple(comms), number=len(comms),
        processes=len(everyone), nodes=len({host for host, _ in everyone}),
        gpus=max((c.size or 0 for c in document.communicators), default=0),
        dead=tuple(dead.values()), dead_number=len(dead), silent=tuple(silent.values()), silent_number=len(silent),
        timeouts=document.ras.timeouts_count,
        unread=next(_ranks_left_out(document), ""),
    )  # fmt: skip


def _ranks_left_out(document: _Document) -> Iterator[str]:
    for each in document.communicators:
        listed = len(each.ranks) + len(each.missing_ranks)
        if listed < (each.size or 0):
            yield f"{listed} of the {each.size} ranks of communicator {each.hash[:_SHOWN]} are listed"


def _of_events(events: Sequence[_Document]) -> list[Status]:
    """Return one status of all events of the monitoring mode; none if there are none."""
    dead = [
        Member(host=e.peer.host, pid=e.peer.pid, gpu=", ".join(map(str, e.peer.cuda_devs)))
        for e in events
        if e.event == "PEER_DEAD"
    ]
    return [Status(watched=True, dead=tuple(dead), dead_number=len(dead))] if events else []


def _member(r: _Rank) -> Member:
    return Member(rank=r.rank, host=r.host, pid=r.pid, gpu="" if r.cuda_dev is None else str(r.cuda_dev))


def _mismatches(ranks: Sequence[_Rank]) -> Iterator[Mismatch]:
    """Yield the kinds of operations of which ranks have launched unequal numbers."""
    for op in dict.fromkeys(op for r in ranks for op in r.collective_counts):
        groups: dict[int, list[Member]] = {}
        for r in ranks:
            groups.setdefault(r.collective_counts.get(op, 0), []).append(_member(r))
        if len(groups) > 1:
            rows = sorted(groups.items(), key=lambda row: -len(row[1]))
            yield Mismatch(
                what=op, groups=tuple(Counted(value=str(v), number=len(m), members=tuple(m)) for v, m in rows)
            )
    begun = [r for r in ranks if r.status.init_state == 7]
    if begun and len(begun) < len(ranks):
        rest = tuple(_member(r) for r in ranks if r.status.init_state != 7)
        those = tuple(map(_member, begun))
        groups_ = (
            Counted(value="RUNNING", number=len(rest), members=rest),
            Counted(value="INIT", number=len(those), members=those),
        )
        yield Mismatch(what="status", groups=groups_)
