"""Arguments of Transformers' `TrainingArguments` that a release has removed."""

from __future__ import annotations

from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.arguments import keyword
from dtdebug_taxonomy.knowledge.facts import replacements, transformers_arguments
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.text import Span

_MAKERS = ("transformers.TrainingArguments", "transformers.Seq2SeqTrainingArguments")

_SUCCESSORS = {"per_device_train_batch_size", "per_device_eval_batch_size", "use_cpu"}
"""Successors that take the same values."""


def check(code: Code) -> Iterator[Hit]:
    """Report the argument."""
    known = transformers_arguments().arguments
    for call in code.calls(*_MAKERS):
        for given in call.keywords:
            found = known.get(given.arg or "")
            if given.arg is None or found is None or not found.until:
                continue
            hint = replacements()["transformers_arguments"].get(given.arg)
            instead = f" Now it is {hint.use}." if hint and not hint.use.startswith("nothing") else ""
            start = code.span(given).start
            name = Span(start, start + len(given.arg))
            renamed = hint is not None and hint.use in _SUCCESSORS and keyword(call, hint.use) is None
            yield Hit(
                name,
                f"TrainingArguments had {given.arg} until Transformers {found.until}; later releases end with a "
                f"TypeError.{instead}",
                Fix(f"Call it {hint.use}", (Edit(name, hint.use),)) if renamed and hint else None,
            )
