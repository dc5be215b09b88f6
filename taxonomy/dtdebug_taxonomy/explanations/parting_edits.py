"""Edits of the test or the data at which ranks parted, each proven to parse."""

from __future__ import annotations

import ast
import re
from typing import NamedTuple

from msgspec.structs import replace

from dtdebug_taxonomy.explanations.account_words import Edit, diff_of
from dtdebug_taxonomy.inference.account_call import parse_line
from dtdebug_taxonomy.model.account import Link, Parting, Place
from dtdebug_taxonomy.model.snapshot import Snapshot

_RANK = re.compile(
    r"^(?:\w+\.)*(?:global_|my_)?(?:rank|is_(?:local_)?main\w*|is_master\w*|is_global_zero|"
    r"is_(?:world|local)_process_zero)$|^(?:\w+\.)?get_rank\(\)$"
)

_PARTS = frozenset({"collective-under-rank-guard", "each-rank-decides-for-itself"})
"""Causes of checks that read of a test what a parting measures."""
_WRITES = re.compile(r"(?i)save|checkpoint|ckpt|write|dump|export|upload|makedirs|mkdir|remove|unlink|replace\(")


class PartingEdit(NamedTuple):
    """An edit after which the ranks go the same way."""

    place: Place
    says: str
    diff: str


def edit_of(parting: Parting, snapshot: Snapshot, *, of_role: bool) -> PartingEdit | None:
    """Return the edit of the user's line after which the ranks do not part there; None if none is certain to parse.

    `of_role`: the value that differs is made of the rank, so that the program means its ranks to part.
    """
    if parting.branch.kind == "for":
        return _even(parting, snapshot)
    if parting.branch.kind != "if":
        return None
    if _asks_rank(parting.text):
        return _without_rank(parting, snapshot) or _barrier(parting, snapshot) or _edit_of_check(parting, snapshot)
    return None if of_role else _agree(parting, snapshot)


def _edit_of_check(parting: Parting, snapshot: Snapshot) -> PartingEdit | None:
    """Return the edit of a check that finds on its own that what stands behind this test parts the ranks."""
    branch = parting.branch
    for found in snapshot.source_findings:
        behind = any(first <= found.line <= last for first, last in branch.held) or found.line == branch.place.line
        if found.diff and not found.hint and found.cause in _PARTS and found.file == branch.place.file and behind:
            return PartingEdit(Place(file=found.file, line=found.line, code=found.words), f"{found.fix}.", found.diff)
    return None


def sharded(code: str) -> ast.Subscript | None:
    """Return the slice by which a rank takes its part: `files[rank::world]`."""
    tree = parse_line(code)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
            first, step = node.slice.lower, node.slice.step
            if first is not None and step is not None and node.slice.upper is None and isinstance(node.value, ast.Name):
                words = (ast.unparse(first), ast.unparse(step))
                if "rank" in words[0].lower() and re.search(r"world|size|replicas|ranks", words[1].lower()):
                    return node
    return None


def _asks_rank(text: str) -> bool:
    tree = parse_line(text)
    return tree is not None and any(
        isinstance(n, ast.Name | ast.Attribute | ast.Call) and _RANK.match(ast.unparse(n)) for n in ast.walk(tree)
    )


def _even(parting: Parting, snapshot: Snapshot) -> PartingEdit | None:
    """Return the edit that cuts what is shared out to a multiple of the number of ranks."""
    link: Link | None = next((each for each in parting.branch.links if sharded(each.place.code)), None)
    node = sharded(link.place.code) if link is not None else None
    if link is None or node is None or not link.place.code.isascii():
        return None
    part = node.slice
    if not isinstance(part, ast.Slice) or part.lower is None or part.step is None:
        return None
    data, rank, world = ast.unparse(node.value), ast.unparse(part.lower), ast.unparse(part.step)
    code, end = link.place.code, node.end_col_offset or 0
    text = f"{data}[{rank} : len({data}) // {world} * {world} : {world}]"
    return _to_edit(Edit(link.place, code[: node.col_offset] + text + code[end:]), snapshot, _EVEN)


_EVEN = "Give each rank equally many: leave out the last that can't be shared out."


def _without_rank(parting: Parting, snapshot: Snapshot) -> PartingEdit | None:
    """Return the test without the part that asks for the rank; the whole test can't be dropped so."""
    place = parting.branch.place
    tree = parse_line(place.code)
    test = tree.body[0].test if isinstance(tree, ast.Module) and isinstance(tree.body[0], ast.If) else None
    if parting.branch.leaves or not isinstance(test, ast.BoolOp) or not isinstance(test.op, ast.And):
        return None
    kept = [each for each in test.values if ast.unparse(each) != parting.text]
    if len(kept) != len(test.values) - 1 or not place.code.isascii():
        return None
    if any(
        _WRITES.search(_line(snapshot, place.file, n))
        for first, last in parting.branch.held
        for n in range(first, last + 1)
    ):
        return None  # all ranks would write the same file
    text = " and ".join(place.code[each.col_offset : each.end_col_offset] for each in kept)
    code = f"{place.code[: test.col_offset]}{text}{place.code[test.end_col_offset :]}"
    return _to_edit(Edit(place, code), snapshot, "Let all ranks run it; guard only printing and writing by the rank.")


def _barrier(parting: Parting, snapshot: Snapshot) -> PartingEdit | None:
    """Return the edit by which the ranks that return early call the barrier that the others wait in."""
    branch, verdict = parting.branch, snapshot.verdict
    if branch.leaves not in {"return", "continue"} or verdict is None or not branch.held:
        return None
    lines = {line for first, last in branch.failed for line in range(first, last + 1)}
    site = next((s for s in verdict.sites if s.file == branch.place.file and s.line in lines), None)
    if site is None or branch.held[0][0] != branch.held[0][1]:
        return None
    code, leaving = (_line(snapshot, site.file, n) for n in (site.line, branch.held[0][0]))
    if not re.fullmatch(r"[\w.]{0,80}\bbarrier\(\)", code) or leaving.split(" ")[0] != branch.leaves:
        return None
    place = Place(file=site.file, line=branch.held[0][0], function=branch.place.function, code=leaving)
    says = "Let the ranks that leave here call the same barrier first."
    return _to_edit(Edit(place, f"{code}\n{leaving}"), snapshot, says)


def _agree(parting: Parting, snapshot: Snapshot) -> PartingEdit | None:
    """Return the edit by which the ranks take the way that any of them would take."""
    place, (torch, dist) = parting.branch.place, parting.branch.modules
    tree = parse_line(place.code)
    test = tree.body[0].test if isinstance(tree, ast.Module) and isinstance(tree.body[0], ast.If) else None
    if not torch or not dist or test is None or place.code.startswith("elif"):
        return None
    if not place.code.isascii() or any(
        side.result is None for side in parting.sides if parting.branch.leaves == "return"
    ):
        return None
    backends = {s.backend for s in snapshot.ranks if s.backend}
    device = "" if backends == {"gloo"} else ', device="cuda"' if backends == {"nccl"} else None
    if device is None:
        return None
    words = place.code[test.col_offset : test.end_col_offset]
    rows = (
        f"agreed = {torch}.tensor(float(bool({words})){device})",
        f"{dist}.all_reduce(agreed, op={dist}.ReduceOp.MAX)",
        f"{place.code[: test.col_offset]}agreed.item(){place.code[test.end_col_offset :]}",
    )
    says = "Let all ranks go the way that any of them takes: share the outcome first."
    return _to_edit(Edit(place, "\n".join(rows)), snapshot, says)


def _to_edit(edit: Edit, snapshot: Snapshot, says: str) -> PartingEdit | None:
    rows = edit.code.split("\n")
    if any(parse_line(row) is None for row in rows):
        return None
    diff = diff_of(edit, snapshot.excerpts)
    return PartingEdit(replace(edit.place, mark=(0, 0)), says, diff) if diff else None


def _line(snapshot: Snapshot, file: str, number: int) -> str:
    for excerpt in snapshot.excerpts:
        if excerpt.file == file and excerpt.first <= number < excerpt.first + len(excerpt.lines):
            return excerpt.lines[number - excerpt.first].strip()
    return ""
