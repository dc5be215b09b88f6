"""Starts in a process of a job what its environment asks for: this folder leads PYTHONPATH, so Python imports it.

The sitecustomize that would have been imported without it is imported in its place, and `sys.path` is as it would have
been. It is written for any Python 3, prints nothing, and imports dtdebug only where that is asked for: to observe the
process (`isolate`) at once, to arm a rank or to follow its collectives (`course`) where the process may be a rank: when
its environment says so, else when what makes ranks is imported.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.machinery import ModuleSpec

_HERE = os.path.dirname(__file__)  # noqa: PTH120 - pathlib takes milliseconds to import, importlib.machinery nearly one
_MAKES_RANKS = frozenset(("torch.distributed", "horovod", "mpi4py", "jax", "tensorflow"))


class _Watch:
    """Begins when the first of these modules is imported; what begins may find that module, so as to see its end."""

    def __init__(self, names: "frozenset[str]", begin: "Callable[[str], ModuleSpec | None]") -> None:
        self._names, self._begin = names, begin

    def find_spec(self, name: str, path: object = None, target: object = None) -> "ModuleSpec | None":
        if name in self._names and self in sys.meta_path:
            try:
                sys.meta_path.remove(self)
            except ValueError:  # another thread was faster
                return None
            return self._begin(name)
        return None


def _isolate() -> None:
    try:
        from dtdebug.experiments.isolate.inside import install

        install.begin()
    except Exception:  # noqa: S110 - another environment without dtdebug: nothing is then seen to be changed
        pass


def _arm(name: str = "") -> "ModuleSpec | None":
    try:
        from dtdebug.live.agent import arm

        arm.arm_child()
    except Exception:  # noqa: S110 - another environment without dtdebug, an old version of it: the job goes on
        pass
    return None


def _course(name: str = "") -> "ModuleSpec | None":
    try:
        from dtdebug.experiments.collectives.inside import install as collectives_install

        return collectives_install.begin(name)
    except Exception:  # as above: who asked for it sees that nothing was written
        return None


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
            _isolate()
        if os.environ.get("DTDEBUG_COURSE") and sys.version_info >= (3, 11):
            if "torch" in sys.modules:  # by the next sitecustomize
                _course()
            else:
                sys.meta_path.insert(0, _Watch(frozenset(("torch",)), _course))
        if os.environ.get("DTDEBUG_RUN") and sys.version_info >= (3, 11):
            if "RANK" in os.environ and "DTDEBUG_ARMED" not in os.environ:
                _arm()
            else:
                sys.meta_path.insert(0, _Watch(_MAKES_RANKS, _arm))
