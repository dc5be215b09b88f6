"""Parameters that the text counts or names as without gradient, where a reducer waits for theirs. Unit: parameters.

Rule: DDP waits for a gradient of each parameter that requires one (PyTorch, "DistributedDataParallel",
https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html).
"""

from __future__ import annotations

from collections.abc import Iterator

from dtdebug_taxonomy.explanations.context import Context
from dtdebug_taxonomy.explanations.model import Explanation, explanation_for, reason_of_figures
from dtdebug_taxonomy.text.lazy_re import lazy_re
from dtdebug_taxonomy.text.pattern_matcher import plain

_REDUCER = lazy_re(r"Expected to have finished reduction in the prior iteration|not used in producing (?:the )?loss")
_NO = r"(?:no|without|missing) grad(?:ient)?s?\b"
_COUNTED = lazy_re(rf"(?im)^[^\n{{}}\"]{{0,60}}\b{_NO}[^\n\d{{}}\"]{{0,30}}[:=] ?(?P<n>\d{{1,6}})\b")
_PART = lazy_re(
    r"(?im)^\W{0,3}(?P<part>[A-Za-z][\w.-]{1,30}(?: [A-Za-z][\w.-]{1,20}){0,2}) param(?:eter)?s?\b[^\n\d{}\"]{0,12}"
    r"[:=] ?(?P<n>\d{1,6})\b"
)
_SAID = lazy_re(
    r"(?i)\b(?P<n>\d{1,6}) (?:of (?:the )?(?P<of>\d{1,6}) )?(?:(?P<part>[A-Za-z][\w.-]{1,30}(?: [a-z][\w.-]{1,20})?) )?"
    rf"param(?:eter)?s (?:\w{{2,10}} ){{0,3}}?{_NO}"
)
_NAMED = lazy_re(
    rf"(?i)\b(?:{_NO}|did not receive (?:a )?grad(?:ient)?s?|unused param(?:eter)?s?)[^\n:{{}}\"]{{0,30}}: ?\[?['\"]?"
    r"(?P<names>[A-Za-z_]\w{0,40}(?:\.\w{1,40}){1,10}(?:['\"]?, ?['\"]?[A-Za-z_]\w{0,40}(?:\.\w{1,40}){1,10}){0,40})"
)


def explain(context: Context) -> Iterator[Explanation]:
    """Yield the parameters without gradient that the text names, if a reducer waits for them."""
    text = context.incident.texts
    if not _REDUCER.search(text):
        return
    named, said, counted = _NAMED.search(text), _SAID.search(text), _COUNTED.search(text)
    found = named or said or counted
    if found is None:
        return
    if named is not None:
        names = [n.strip(" '\"") for n in named["names"].split(",")]
        part = names[0].rpartition(".")[0] if len(names) == 1 else _common(names)
        title = f"No gradient reaches {', '.join(names[:3])}{f' and {len(names) - 3} more' if len(names) > 3 else ''}"
        what = f"`{part}`" if part else "these parameters"
    else:
        n = int(found["n"])
        rows = (m for m in _PART.finditer(text) if int(m["n"]) >= n)
        row = found if said is not None else next(rows, None)
        part = " ".join((row["part"] or "").split()) if row is not None else ""
        if not n:
            return
        whole = (said["of"] if said is not None else row["n"] if row is not None else "") or ""
        of = f"All {n}" if whole == str(n) else f"{n} of {whole}" if whole else f"{n}"
        title = f"{of} {f'{plain(part)} ' if part else ''}parameters get no gradient"
        what = f"the {plain(part)} parameters" if part else "them"
    yield explanation_for(
        context.symptom,
        title,
        "They require a gradient and take no part in the loss, so DDP waits for theirs without end.",
        f"Freeze {what} before the model is wrapped (`requires_grad_(False)`), or let the loss use them."
        " find_unused_parameters=True only works around it.",
        0.8,
        reason_of_figures(context.incident, "parameters-named-without-gradient", found),
        pattern="fix distributed api usage",
    )


def _common(names: list[str]) -> str:
    """Return the module that all names are parts of."""
    parts = [n.split(".") for n in names]
    shared = [row[0] for row in zip(*parts, strict=False) if len({*row}) == 1]
    return ".".join(shared)
