"""An index that is named against the size of what it points into. Unit: rows of a table, classes.

Rule: an index runs from 0 to the size less one (PyTorch, "torch.nn.Embedding",
https://docs.pytorch.org/docs/stable/generated/torch.nn.Embedding.html).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dtdebug_taxonomy.explanations.context import Context
from dtdebug_taxonomy.explanations.model import Explanation, explanation_for, reason_of_figures
from dtdebug_taxonomy.text.lazy_re import lazy_re

_OUTSIDE = lazy_re(
    r"(?i)device-side assert|\bindex(?:es)? (?:is |are )?out of (?:range|bounds)|\bout of bounds\b|srcIndex"
    r"|t >= 0 && t <"
)
_IS = r"(?:\s?(?:is|are|was|of|has|have|=|:|\u4e3a|\u662f|\uff1a|\(|only|with)){0,3}\s?"
_TOKEN = lazy_re(
    r"(?i)(?:(?<![a-z])(?:token|eos|bos|pad|input|special|added|max(?:imum)?)[ _]{0,2}(?:token[ _])?(?:ids?|index)"
    rf"|(?<![a-z])ids?(?=\s?[\u4e3a\u662f]))(?![a-z]){_IS}(?P<n>\d{{2,7}})(?![\w.]\d|\w)"
)
_ROWS = lazy_re(
    r"(?i)(?:(?<![a-z])vocab(?:ulary)?(?:[ _]size)?|(?<![a-z])(?:num_embeddings|embeddings?(?: table| layer| matrix)?"
    rf"(?: rows| size)?)|\u8bcd\u8868(?:\u5927\u5c0f)?)(?![a-z]){_IS}(?P<n>\d{{3,7}})(?![\w.]\d|\w)"
    r"|\bEmbedding\((?P<of>\d{3,7}), ?\d{1,6}"
)
_LABEL = lazy_re(
    rf"(?i)(?<![a-z])(?:(?:max(?:imum)?|largest|highest)?[ _]?(?:labels?|class(?:[ _](?:id|index))?|targets?))(?![a-z])"
    rf"{_IS}(?P<n>\d{{1,6}})(?![\w.]\d|\w| classes)"
)
_CLASSES = lazy_re(
    rf"(?i)(?<![a-z])(?:num_(?:classes|labels)|n_classes|number of (?:classes|labels)){_IS}(?P<n>\d{{1,6}})"
    r"(?![\w.]\d|\w)|(?<![\w.])(?P<of>\d{1,6}) classes\b"
)


def explain(context: Context) -> Iterator[Explanation]:
    """Yield a named index that does not fit the named size, or a named token id with the rows that it needs."""
    text = context.incident.texts
    if not _OUTSIDE.search(text):
        return
    for what, whole, indices, sizes in (
        ("Token id", "vocabulary", _TOKEN, _ROWS),
        ("Label", "number of classes", _LABEL, _CLASSES),
    ):
        index, size = max(indices.finditer(text), key=lambda m: int(m["n"]), default=None), sizes.search(text)
        if index is None or (size is None and whole != "vocabulary"):
            continue
        n, rows = int(index["n"]), int(size["n"] or size["of"]) if size is not None else 0
        if size is not None and n < rows:
            continue
        title = f"{what} {n} needs an embedding of at least {n + 1} rows"
        fix = (
            f"Compare {n} with `model.get_input_embeddings().num_embeddings` and `len(tokenizer)`: if it is not below"
            " the rows, take a token that the model has, or call `model.resize_token_embeddings(len(tokenizer))`."
        )
        if size is not None:
            title = f"{what} {n} is outside the {whole} of {rows}: it runs from 0 to {rows - 1}"
            fix = (
                "Take a token that the model has, or call `model.resize_token_embeddings(len(tokenizer))` and save it."
                if whole == "vocabulary"
                else f"Set the number of classes to at least {n + 1}, or map the labels to 0 to {rows - 1}."
            )
        yield _explanation(context, title, fix, index, sure=size is not None)
        return


def _explanation(context: Context, title: str, fix: str, index: re.Match[str], *, sure: bool) -> Explanation:
    return explanation_for(
        context.symptom,
        title,
        "An index that is not below the size of its table reads past the end, which the kernel's assertion stops.",
        fix,
        0.6 if sure else 0.5,
        reason_of_figures(context.incident, "index-against-size", index),
    )
