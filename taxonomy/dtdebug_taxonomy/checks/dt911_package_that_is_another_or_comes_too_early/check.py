"""The apex package that is not NVIDIA's, and Horovod built before its framework."""

from __future__ import annotations

from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.source.requirements import Requirement, installed_packages
from dtdebug_taxonomy.source.source import Source

_FRAMEWORKS = frozenset({"torch", "tensorflow", "tensorflow-gpu", "tensorflow-cpu", "mxnet", "keras"})
_OTHER_SOURCE = ("-i", "--index-url", "-f", "--find-links", "--extra-index-url", "--no-index")


def check(source: Source) -> Iterator[Hit]:
    """Check installed packages in order."""
    rows = list(installed_packages(source))
    for at, row in enumerate(rows):
        elsewhere = row.rest.startswith("@") or any(o.partition("=")[0] in _OTHER_SOURCE for o in row.options)
        if row.name == "apex" and not elsewhere:
            yield Hit(
                row.span,
                "The package apex on PyPI is a web toolkit and not NVIDIA's: imports such as apex.optimizers fail. "
                "NVIDIA's is built from github.com/NVIDIA/apex.",
            )
        if row.name == "horovod":
            yield from _order(rows, at)


def _order(rows: list[Requirement], at: int) -> Iterator[Hit]:
    horovod = rows[at]
    with_it = [r for r in rows if r.name in _FRAMEWORKS and r.command is horovod.command]
    later = [r for r in rows[at + 1 :] if r.name in _FRAMEWORKS]
    earlier = [r for r in rows[:at] if r.name in _FRAMEWORKS and r.command is not horovod.command]
    found = with_it or later
    if not found or earlier:
        return
    when = "together with" if with_it else "before"
    yield Hit(
        horovod.span,
        f"Horovod is built for the frameworks that are there when it is installed: {when} {found[0].name} it is built "
        f"without it, and `import horovod.{_module(found[0].name)}` fails.",
    )


def _module(name: str) -> str:
    return {"tensorflow-gpu": "tensorflow", "tensorflow-cpu": "tensorflow"}.get(name, name)
