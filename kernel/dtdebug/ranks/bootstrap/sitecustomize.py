"""Arms the ranks of a job that was started by dtdebug: its folder leads PYTHONPATH, so Python imports it at start-up.

The sitecustomize that would have been imported without it is imported in its place, and `sys.path` is as it would have
been. It is written for any Python 3, prints nothing, and imports dtdebug only where the process may be a rank: when its
environment says so, else when something that makes ranks is imported.
"""

import os
import sys
from importlib.machinery import ModuleSpec, PathFinder

_HERE = os.path.realpath(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120 - pathlib takes milliseconds
_MAKES_RANKS = frozenset(("torch.distributed", "horovod", "mpi4py", "jax", "tensorflow"))


class _Watch:
    """Arms when the first of these modules is imported; finds no module itself."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name in _MAKES_RANKS:
            sys.meta_path.remove(self)
            _arm()


def _arm() -> None:
    try:
        from dtdebug.ranks import agent

        agent.arm_child()
    except Exception:  # noqa: S110 - another environment without dtdebug, an old version of it: the job goes on
        pass


def _become(spec: ModuleSpec) -> None:
    """Makes the next sitecustomize the one that Python has imported; its errors are its own."""
    from importlib.util import module_from_spec

    module = sys.modules["sitecustomize"] = module_from_spec(spec)
    if spec.loader:
        spec.loader.exec_module(module)


sys.path[:] = [entry for entry in sys.path if os.path.realpath(entry or os.curdir) != _HERE]
_next = PathFinder.find_spec("sitecustomize", sys.path) if __name__ == "sitecustomize" else None
try:
    if _next:
        _become(_next)
finally:
    if os.environ.get("DTDEBUG_RUN") and sys.version_info >= (3, 11):
        if "RANK" in os.environ and "DTDEBUG_ARMED" not in os.environ:
            _arm()
        else:
            sys.meta_path.insert(0, _Watch())
