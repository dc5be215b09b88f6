"""Holds what is said of dumps against the dumps, claim by claim, without any code of the analyzer."""

from __future__ import annotations

import re
from typing import Any

from dtdebug_taxonomy.model.claims import Claim
from dtdebug_taxonomy.model.ranks import Verdict

P2P = ("send", "recv", "coalesced")


class Dumps:
    """The entries of all ranks, as they stand in the files."""

    def __init__(self, dumps: dict[int, Any]) -> None:
        self.dumps = dumps
        self.members: dict[str, set[int]] = {}
        self.names: dict[str, str] = {}
        for content in dumps.values():
            for uid, about in content["pg_config"].items():
                self.members[uid] = set(map(int, re.findall(r"\d+", about["ranks"])))
                desc = about["desc"]
                self.names["world" if desc == "default_pg" else f"{desc} ({uid})"] = uid

    def entries(self, rank: int) -> list[dict[str, Any]]:
        return self.dumps.get(rank, {}).get("entries", [])  # a rank without a dump contradicts nothing

    def of(self, rank: int, group: str, op: str, seq: int | None) -> list[dict[str, Any]]:
        """A rank's entries of one call."""
        return [
            e
            for e in self.entries(rank)
            if e["process_group"][0] == group and name(e) == op and (op in P2P or e["collective_seq_id"] == seq)
        ]

    def open(self, rank: int) -> list[dict[str, Any]]:
        return [e for e in self.entries(rank) if e["state"] != "completed" and not e["retired"] and name(e) not in P2P]

    def begun(self, rank: int, group: str) -> int:
        """The number that the rank's counters, or its entries, have reached in a group."""
        mine = sorted((uid for uid, ranks in self.members.items() if rank in ranks), key=int)
        row = self.dumps[rank]["pg_status"].get(str(mine.index(group)), {})
        shown = [e["collective_seq_id"] for e in self.entries(rank) if e["process_group"][0] == group]
        return max([int(row.get("last_enqueued_collective", 0)), *shown])


def name(entry: dict[str, Any]) -> str:
    """The operation of an entry."""
    return entry["profiling_name"].partition(":")[2].split()[0]


def done(entry: dict[str, Any]) -> bool:
    return bool(entry["state"] == "completed" or entry["retired"])


def contradictions(verdict: Verdict, dumps: Dumps) -> list[str]:
    """What the verdict says that the dumps do not."""
    found = [f"{problem}: {claim.text}" for claim in verdict.claims for problem in _of_claim(claim, dumps)]
    if verdict.kind == "none":
        found += [f"none, and rank {r} has {name(dumps.open(r)[0])} open" for r in dumps.dumps if dumps.open(r)]
        found += [f"none, and rank {r} left no dump" for r in dumps.members["0"] - dumps.dumps.keys()]
    if verdict.group is not None and verdict.group.name in dumps.names:
        members = dumps.members[dumps.names[verdict.group.name]]
        if set(verdict.group.ranks) != members:
            found.append(f"{verdict.group.ranks} are no members of {verdict.group.name}")
        if verdict.kind not in ("fabric", "none") and not set(verdict.culprits) <= members:
            found.append(f"culprits {verdict.culprits} are not in {verdict.group.name}")
        call, uid = verdict.collective, dumps.names[verdict.group.name]
        numbered = call is not None and call.seq is not None and call.op not in P2P
        if numbered and not any(dumps.of(rank, uid, call.op, call.seq) for rank in dumps.dumps):
            found.append(f"nobody called {call.op} #{call.seq} of {verdict.group.name}")
    for rank in verdict.waiting:
        if rank in dumps.dumps and all(map(done, dumps.entries(rank))):
            found.append(f"rank {rank} waits in nothing that is open")
    found += [f"evidence without a claim: {e}" for e in verdict.evidence if e not in {c.text for c in verdict.claims}]
    if "called nothing" in verdict.summary:
        found.append(verdict.summary)
    return found


def _of_claim(claim: Claim, dumps: Dumps) -> list[str]:
    record, problems = claim.record, []
    if record.rank is not None and record.rank in dumps.dumps and not record.path.endswith(f"_{record.rank}"):
        problems.append(f"cites {record.path}")
    group = dumps.names.get(claim.group, "")
    if claim.op and not group:
        return [*problems, f"unknown group {claim.group!r}"]
    if claim.op and not {*claim.ranks, *claim.of} <= dumps.members[group]:
        problems.append("names ranks that are not in the group")
    rows = {rank: dumps.of(rank, group, claim.op, claim.seq) for rank in claim.ranks if rank in dumps.dumps}
    match claim.what:
        case "called" | "waits" | "unfinished":
            problems += [f"rank {rank} has no such entry" for rank, mine in rows.items() if not mine]
            if claim.what != "called":
                problems += [
                    f"rank {rank} has finished it" for rank, mine in rows.items() if mine and all(map(done, mine))
                ]
            if claim.file:
                problems += [f"rank {rank} was never there" for rank, mine in rows.items() if not _there(claim, mine)]
        case "entered":
            problems += [f"rank {r} never came" for r in rows if dumps.begun(r, group) < (claim.seq or 0)]
        case "finished":
            for rank, mine in rows.items():
                if dumps.begun(rank, group) < (claim.seq or 0) or any(not done(e) for e in mine):
                    problems.append(f"rank {rank} has not finished it")
        case "silent":
            problems += [f"rank {rank} left a dump" for rank in rows]
        case "counted":
            problems += [f"rank {r} has begun another number" for r in rows if dumps.begun(r, group) != claim.count]
    if claim.what == "waits" and claim.op not in P2P:
        for rank in claim.of:
            theirs = dumps.of(rank, group, claim.op, claim.seq)
            if any(map(done, theirs)) and any(not done(e) for e in theirs):
                problems.append(f"rank {rank} has finished what is waited for")
            if theirs and all(map(done, theirs)):
                problems.append(f"rank {rank} has finished it")
    if claim.what == "waits":
        problems += ["waits for itself"] if set(claim.ranks) & set(claim.of) else []
    return problems + _arguments(claim, rows)


def _there(claim: Claim, rows: list[dict[str, Any]]) -> bool:
    return any((f["filename"], f["line"]) == (claim.file, claim.line) for e in rows for f in e.get("frames", []))


def _arguments(claim: Claim, rows: dict[int, list[dict[str, Any]]]) -> list[str]:
    """Sizes and types that the claim names stand in the entry."""
    if claim.what != "called":
        return []
    problems = []
    for rank, mine in rows.items():
        text = repr([(e["input_sizes"], e["output_sizes"], e["input_dtypes"], e["output_dtypes"]) for e in mine])
        named = [*re.findall(r"\[[\d, ]+\]", claim.words), *re.findall(r"type (\w+)", claim.words)]
        problems += [
            f"rank {rank}: {word} is not in its entry" for word in named if word not in text and word != "none"
        ]
    return problems
