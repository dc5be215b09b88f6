"""Lets a run of `dtdebug isolate` observe and change its Python processes: its folder leads PYTHONPATH.

The sitecustomize that would have been imported without it is imported in its place, and `sys.path` is as it would have
been.
"""

import os
import sys

_HERE = os.path.dirname(__file__)  # noqa: PTH120 - pathlib takes milliseconds to import


def _import_next() -> None:
    """Makes the next sitecustomize the one that Python has imported; its errors are its own."""
    found = (finder.find_spec("sitecustomize", sys.path) for finder in sys.meta_path if hasattr(finder, "find_spec"))
    spec = next((spec for spec in found if spec and spec.loader), None)
    if spec and spec.loader:
        from importlib.util import module_from_spec

        sys.modules["sitecustomize"] = module = module_from_spec(spec)
        spec.loader.exec_module(module)


if __name__ == "sitecustomize":
    sys.path[:] = [entry for entry in sys.path if entry != _HERE]
    try:
        _import_next()
    finally:
        if os.environ.get("DTDEBUG_ISOLATE"):
            try:
                from dtdebug.isolate.inside import start

                start.begin()
            except Exception:  # noqa: S110 - another environment without dtdebug: nothing is then seen to be changed
                pass
