"""Explains ranks that do not fit together by the line at which their values part."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from dtdebug_taxonomy.explanations.account import by_culprit, reason_from
from dtdebug_taxonomy.explanations.account_words import where
from dtdebug_taxonomy.explanations.context import Context
from dtdebug_taxonomy.explanations.model import Explanation, explanation_for
from dtdebug_taxonomy.explanations.source_check import is_lone_call
from dtdebug_taxonomy.inference.account_call import parse_line
from dtdebug_taxonomy.inference.ranks_apart import OPAQUE, compares_ranks, values_at
from dtdebug_taxonomy.model.account import Account, Link
from dtdebug_taxonomy.model.ranks import Verdict
from dtdebug_taxonomy.text.pattern_matcher import plain
from dtdebug_taxonomy.text.value_texts import read_value

EVIDENCE = "value-parts-by-rank"
_MEASURED, _READ = 0.85, 0.7
"""Probabilities of a line at which two ranks are known to have different values, and of one that is only read."""
_MOST, _LONGEST_CODE = 3, 100
_EXPECTED = re.compile(r"it expected (?P<own>\d{1,20}) bytes and was sent (?P<sent>\d{1,20})")
_LOADERS = frozenset({"DataLoader", "StatefulDataLoader"})
_SAME_SIZES = frozenset({"drop_last", "batch_sampler", "collate_fn", None})
"""Arguments of a loader that decide the sizes of its batches; None: those that are unpacked."""


def explain(context: Context) -> Iterator[Explanation]:
    """Yield the line at which a value parts, of the first account that compares ranks and reaches one."""
    snapshot = context.incident.snapshot
    accounts = by_culprit(context)
    for account in accounts:
        if not compares_ranks(account, snapshot.verdict) or (link := parting_link(account, accounts)) is None:
            continue
        if not account.exception and is_lone_call(context, account.place):
            continue
        values = values_at(account, accounts, account.root)
        known = len({*values.values()}) > 1
        code, at = plain(link.place.code, _LONGEST_CODE), where(link.place)
        title = f"`{_head(account)}` is not the same on every rank: `{code}` ({at}) {_differs(account, values)}"
        call = where(account.place) if account.place is not None else "the call"
        fix = f"Edit {at}: let every rank come to the same there, or exchange the sizes and pad before {call}."
        batches = _loader_of(account)
        if batches is not None:
            at, sizes = where(batches.place), _bytes_of(snapshot.verdict)
            title = (
                f"`{_head(account)}` is not of one size{sizes}: the last batch of the loader ({at}) can be "
                "smaller, and each rank has its own part of the data"
            )
            fix = f"Edit {call}: exchange the sizes and pad before it, or sum counts with `all_reduce` in its place; "
            fix += f"`drop_last=True` at {at} leaves samples out."
        counted = _counted_link(account)
        if counted is not None:
            own, link = link, account.links[counted]
            lengths = _lengths(account, accounts, counted)
            known = len({*lengths.values()}) > 1
            code, at = plain(link.place.code, _LONGEST_CODE), where(link.place)
            rows = ", ".join(f"{number} on rank {rank}" for rank, number in sorted(lengths.items())[:_MOST])
            said = f"is {rows}" if known else f"is not the same on every rank{f' ({rows})' if rows else ''}"
            whence = f" ({where(own.place)})" if own is not link else ""
            name = f"len({_counted_name(account, counted)})"
            title = f"`{name}` {said}: `{code}` ({at}) is made of what each rank has of its own{whence}"
            fix = f"Edit {at}: make it of a fixed list, or of what all ranks have (`all_gather_object` and the union)."
        reason = reason_from(account, EVIDENCE)
        why = "The call needs it to be the same on all of them."
        found = explanation_for(
            context.symptom, plain(title, 500), why, plain(fix, 500), _MEASURED if known else _READ, reason
        )
        yield replace(found, file=link.place.file, line=link.place.line)
        return


def _loader_of(account: Account) -> Link | None:
    """Return the loader without `drop_last` whose batches a call's sizes come from; None if there is none."""
    path = [account.links[n] for n in _path(account)]
    if not any(link.how == "loop" for link in path):
        return None
    tree = parse_line(path[-1].place.code)
    for call in (n for n in ast.walk(tree) if isinstance(n, ast.Call)) if tree is not None else ():
        given = {k.arg: k.value for k in call.keywords}
        if ast.unparse(call.func).rpartition(".")[2] in _LOADERS and not given.keys() & _SAME_SIZES:
            return path[-1]
    return None


def _bytes_of(verdict: Verdict | None) -> str:
    """Return what gloo said of the sizes: " (120 bytes on rank 1, which was sent 124)"."""
    for claim in verdict.claims if verdict is not None else ():
        found = _EXPECTED.search(claim.words) if claim.what == "compared" and claim.ranks else None
        if found is not None:
            others = {rank for each in (verdict.claims if verdict else ()) for rank in each.ranks} - {*claim.ranks}
            sender = f" by rank {min(others)}" if len(others) == 1 else ""
            return f" ({found['own']} bytes on rank {claim.ranks[0]}, which was sent {found['sent']}{sender})"
    return ""


def parting_link(account: Account, accounts: Sequence[Account]) -> Link | None:
    """Return the link at which the value of a call parts; None if the way back does not reach one."""
    at = account.root
    if not 0 <= at < len(account.links):
        return None
    known = len({*values_at(account, accounts, at).values()}) > 1
    if OPAQUE.fullmatch(account.links[at].value.text):
        return None  # an object that knows its rank is no fault: what it is asked for may differ
    return account.links[at] if known or at == account.by_rank else None


def _counted_link(account: Account) -> int | None:
    """Return the index of the line that made a container whose length the call depends on; None if there is none.

    A container is followed to where it was made; what merely hands it on is passed over.
    """
    links, path = account.links, _path(account)
    code = account.place.code if account.place is not None else ""
    for step, at in enumerate(path):
        if f"len({links[at].value.name})" in code.replace(" ", ""):
            text = links[at].value.text
            while text and step + 1 < len(path) and links[path[step + 1]].value.text == text:
                step, at = step + 1, path[step + 1]  # noqa: PLW2901 - it ends with this
            return at
        code = links[at].place.code
    return None


def _counted_name(account: Account, at: int) -> str:
    """Return the name of a container where its length is taken: the first link that has its value."""
    value = account.links[at].value
    return next(
        (v.name for n in _path(account) if value.text and (v := account.links[n].value).text == value.text), value.name
    )


def _path(account: Account) -> list[int]:
    """Return the indices of the links from the call to the root."""
    path: list[int] = []
    for at in range(account.root, -1, -1):
        if not path or account.links[at].depth < account.links[path[-1]].depth:
            path.append(at)
    return path[::-1]


def _lengths(account: Account, accounts: Sequence[Account], at: int) -> dict[int, int]:
    texts = values_at(account, accounts, at)
    found = {rank: value for rank, text in texts.items() if (value := read_value(text)) is not None}
    return {rank: value.length for rank, value in found.items() if value.length is not None}


def _head(account: Account) -> str:
    """Return the name at the call whose way back the line lies on."""
    begin = next((n for n in range(account.root, -1, -1) if account.links[n].depth == 0), 0)
    return account.links[begin].value.name


def _differs(account: Account, values: dict[int, str]) -> str:
    if len({*values.values()}) > 1:
        rows = ", ".join(f"{text} on rank {rank}" for rank, text in sorted(values.items())[:_MOST])
        return f"gives {rows}"
    own = f"; rank {account.rank} has {values[account.rank]}" if account.rank in values else ""
    return f"depends on what each rank has of its own{own}"
