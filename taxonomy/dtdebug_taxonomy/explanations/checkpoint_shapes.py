"""Shapes of a checkpoint that are not those of the model: the size that differs, and what gave the model its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from itertools import islice

from dtdebug_taxonomy.explanations.account_words import Edit, find_spans, replace_expression
from dtdebug_taxonomy.explanations.faults import Fault
from dtdebug_taxonomy.inference.account_call import chains_of
from dtdebug_taxonomy.model.account import Account, Link
from dtdebug_taxonomy.text.lazy_re import lazy_re

_SIZE = r"torch\.Size\(\[(?P<{}>[\d, ]{{0,60}})\]\)"
_MISMATCH = lazy_re(
    rf"size mismatch for (?P<name>[\w.]{{1,160}}): copying a param with shape {_SIZE.format('saved')}"
    rf" from checkpoint, the shape in current model is {_SIZE.format('made')}"
)
_OF_SHARDS = lazy_re(
    rf"Size mismatch between saved {_SIZE.format('saved')} and current: {_SIZE.format('made')}"
    r" for (?P<name>[\w.]{1,160})"
)
_VOCABULARY = lazy_re(r"embed|lm_head|\bwte\b|output_layer")
_MOST = 200
_SETS = frozenset({"literal", "option", "default", "file", "environment"})


def of_shapes(account: Account, output: str) -> Fault | None:
    """Return the one size that a checkpoint and a model do not share, or the share of each parameter that a rank has.

    Empty and flat parameters are shards, of which the causes of sharded checkpoints tell.
    """
    reads = _MISMATCH if "loading state_dict" in account.exception else _OF_SHARDS
    found = islice(reads.finditer(output), _MOST)
    rows = [(m["name"], _shape(m["saved"]), _shape(m["made"])) for m in found]
    if not rows or any(len(saved) != len(made) or not math.prod((*saved, *made)) for _, saved, made in rows):
        return None
    name, saved, made = rows[0]
    apart = {pair for _, old, new in rows for pair in zip(old, new, strict=True) if pair[0] != pair[1]}
    said = f"`{name}` has the shape {list(saved)} in the checkpoint and {list(made)} in the model"
    shares = {old / new for old, new in apart}
    world = next((int(f.text) for f in account.facts if f.name == "world size" and f.text.isdecimal()), 0)
    share = shares.pop() if len(apart) > 1 and len(shares) == 1 else 0
    if share > 1 and share == int(share) and world and not world % int(share):
        said += f", and so with {len(rows)}: a rank has one of {int(share)} parts, the checkpoint the whole"
        return Fault(said, "load the whole state before the model is split, or each rank's part with torch's DCP.")
    if len(apart) != 1:
        return Fault(said, "make the model as when it was saved, or load the checkpoint of this model.")
    old, new = apart.pop()
    shared = {str(size) for _, one, two in rows for size, other in zip(one, two, strict=True) if size == other}
    link = next((each for each in account.links if each.how in _SETS and each.value.text == str(new)), None)
    if link is None and (part := _factor(_made(account, name), old, new, shared)) is not None:
        fits = int(part.value.text) * old // new
        return Fault(said, f"`{part.value.name}` = {fits} fits this checkpoint.", part, likely=True)
    fix = f"{old} fits this checkpoint; to keep {new}, drop {name!r} from the state, and load with `strict=False`."
    if _VOCABULARY.search(name) and new > old:
        fix = f"load into a model of {old} rows, and call `resize_token_embeddings({new})` on it afterwards."
    return Fault(said, fix, link, _with_size(link, new, old), likely=True)


def _made(account: Account, name: str) -> tuple[Link, ...]:
    """Return the way back of the line that made a part of the model."""
    chains = (chain for part in name.split(".") for chain in chains_of(account, f"self.{part}"))
    return next((chain for chain in chains if chain[0].how == "attribute"), ())


def _factor(links: Sequence[Link], old: int, new: int, shared: AbstractSet[str]) -> Link | None:
    """Return the only setting that can be a factor of the size which differs, and of no size that agrees."""
    ends = {
        each.value.name: each
        for each in links
        if each.how in _SETS and each.value.text.isdecimal() and each.value.text not in shared
        and int(each.value.text) > 1 and not new % int(each.value.text) and not int(each.value.text) * old % new
    }  # fmt: skip
    return next(iter(ends.values())) if len(ends) == 1 else None


def _shape(text: str) -> tuple[int, ...]:
    return tuple(int(n) for n in text.split(",") if n.strip())


def _with_size(link: Link | None, new: int, old: int) -> Edit | None:
    spans = find_spans(link.place.code, (str(new),)) if link is not None and link.how == "literal" else []
    return replace_expression(link.place, spans[0], str(old)) if link is not None and len(spans) == 1 else None
