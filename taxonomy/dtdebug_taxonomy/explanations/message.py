"""The failure's own message as an explanation: it says what to do, or what is wrong with the request."""

from __future__ import annotations

from collections.abc import Iterator

from dtdebug_taxonomy.explanations.context import Context
from dtdebug_taxonomy.explanations.model import Explanation, Reason, explanation_for
from dtdebug_taxonomy.logs.message_advice import MessageAdvice

EVIDENCE = "message-says-so"
"""Name of the reason that a message itself is."""
_PROBABILITY = 0.5
_SENTENCE = 160
"""Characters of a message in a title."""


def explain_order(context: Context) -> Iterator[Explanation]:
    """Yield what the message says to do, unless its first line, which is shown anyway, says it all."""
    if (advice := _advice(context)) is not None and advice.orders and not advice.repeats:
        yield _explanation(advice, context.symptom)


def explain_fault(context: Context) -> Iterator[Explanation]:
    """Yield what the message says is wrong with the request."""
    if (advice := _advice(context)) is not None and not (advice.orders or advice.refused):
        yield _explanation(advice, context.symptom)


def explain_refusal(context: Context) -> Iterator[Explanation]:
    """Yield the message that only says that something is refused."""
    if (advice := _advice(context)) is not None and advice.refused:
        yield _explanation(advice, context.symptom)


def _advice(context: Context) -> MessageAdvice | None:
    """Return the message's advice; the program's own check of its ranks says nothing about the cause."""
    return None if context.own_check is not None else context.incident.message


def _explanation(own: MessageAdvice, symptom: str) -> Explanation:
    shown = own.words if len(own.words) <= _SENTENCE else f"{own.words[: _SENTENCE - 3]}..."
    fix = "Do what it says." if own.orders else "Change what was asked for, or how it is called, so that it fits."
    if own.settings and not own.orders:
        names, verb = " and ".join(own.settings), "are set or come" if len(own.settings) > 1 else "is set or comes"
        fix = f"Look where {names} {verb} from, and change what does not fit."
    return explanation_for(
        symptom,
        f"The message says {'what to do' if own.orders else 'what is wrong'}: {shown}",
        "The error that ended the process says so itself, which tells more than a resemblance to other failures."
        + ("" if own.whole == own.words else f" In full: {own.whole}"),
        fix,
        _PROBABILITY,
        Reason(
            evidence=EVIDENCE,
            means="The message of the failure itself.",
            source="printed" if own.line else "exception",
            weight=1.5,
            line=own.line,
            words=own.words[:200],
            rank=own.rank,
        ),
        specific=False,
    )
