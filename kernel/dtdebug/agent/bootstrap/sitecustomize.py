"""Arms the ranks of a job that was started by dtdebug: its folder leads PYTHONPATH, so Python imports it at start-up.

The sitecustomize that would have been imported without it is imported in its place, and `sys.path` is as it would have
been. It is written for any Python 3, prints nothing, and imports dtdebug only where the process may be a rank: when its
environment says so, else when something that makes ranks is imported.
"""

import os
import sys

_HERE = os.path.dirname(__file__)  # noqa: PTH120 - pathlib takes milliseconds to import, importlib.machinery nearly one
_MAKES_RANKS = frozenset(("torch.distributed", "horovod", "mpi4py", "jax", "tensorflow"))


class _Watch:
    """Arms when the first of these modules is imported; finds no module itself."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name in _MAKES_RANKS and self in sys.meta_path:
            try:
                sys.meta_path.remove(self)
            except ValueError:  # another thread was faster
                return
            _arm()


def _arm() -> None:
    try:
        from dtdebug.agent import arming

        arming.arm_child()
    except Exception:  # noqa: S110 - another environment without dtdebug, an old version of it: the job goes on
        pass


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
        if os.environ.get("DTDEBUG_RUN") and sys.version_info >= (3, 11):
            if "RANK" in os.environ and "DTDEBUG_ARMED" not in os.environ:
                _arm()
            else:
                sys.meta_path.insert(0, _Watch())
