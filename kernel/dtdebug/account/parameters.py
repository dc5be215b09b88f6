"""Names the parameters that DDP counts by number in its message."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from dtdebug.account.objects import attribute, is_kind, item, loaded, stored, tensor_property
from dtdebug.account.scopes import Scope
from dtdebug.account.values import masked
from dtdebug_taxonomy.model.account import NamedValue

_UNUSED = re.compile(r"did not receive grad for rank \d{1,7}: (?P<indices>\d{1,7}(?: \d{1,7}){0,200})")
_SHOWN, _MOST = 3, 20_000


def unused_parameters(stack: Sequence[Scope], message: str) -> tuple[NamedValue, ...]:
    """Return the names of the parameters that received no gradient; none where DDP itself is not on the stack."""
    found = _UNUSED.search(message)
    kind = loaded("torch.nn.parallel", "DistributedDataParallel")
    owners = (item(scope.local, "self") for scope in reversed(stack)) if found is not None else ()
    model = next((owner for owner in owners if is_kind(owner, kind)), None)
    if found is None or model is None or attribute(model, "parameters_to_ignore"):
        return ()
    names = [*islice(_trained(attribute(model, "module")), _MOST)]
    numbers = [int(number) for number in found["indices"].split()]
    if max(numbers) >= len(names):
        return ()  # some were frozen after the model was wrapped: the numbers count others
    more = f" and {len(numbers) - _SHOWN} more" if len(numbers) > _SHOWN else ""
    return (masked("unused", f"{', '.join(names[n] for n in numbers[:_SHOWN])}{more}"),)


def _trained(module: Any) -> Iterator[str]:
    """Yield the parameters that require a gradient in the order in which DDP counts them, each once."""
    seen: set[int] = set()
    todo = [("", module)]
    while todo and len(seen) < _MOST:
        prefix, each = todo.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        own = stored(each)
        for name, value in _items(own, "_parameters"):
            if value is not None and id(value) not in seen and tensor_property(value, "requires_grad") is True:
                seen.add(id(value))
                yield f"{prefix}{name}"
        parts = [(f"{prefix}{name}.", part) for name, part in _items(own, "_modules") if part is not None]
        todo += reversed(parts)


def _items(own: dict[str, Any], name: str) -> Iterator[tuple[str, Any]]:
    table: Any = item(own, name)
    pairs = islice(dict.items(table), _MOST) if is_kind(table, dict) else ()
    yield from ((key, value) for key, value in pairs if type(key) is str)
