"""Acts when the gradients of an optimizer's step are complete: before the step, or after the closure it calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def when_complete(args: tuple[Any, ...], kwargs: dict[str, Any], act: Callable[[], None]) -> Any:
    """Call `act` now, or return the arguments of the step with a closure that calls it at its end."""
    given = kwargs.get("closure") or (args[1] if len(args) > 1 and callable(args[1]) else None)
    if given is None or not callable(given):
        act()
        return None

    def closure(*a: Any, **k: Any) -> Any:
        result = given(*a, **k)
        act()
        return result

    if "closure" in kwargs:
        return args, {**kwargs, "closure": closure}
    return (args[0], closure, *args[2:]), kwargs
