"""Reads foreign objects without running their code: types, stored attributes, items of plain containers.

A class may define `__getattribute__`, `__class__`, `__len__`, `__eq__` or a metaclass that does anything. So types are
compared by identity, and their parts are read by the descriptors of `type` itself.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

MISSING: Any = object()
"""Stands for a value that can't be had without running foreign code."""
_NAME = type.__dict__["__name__"].__get__
_QUALNAME = type.__dict__["__qualname__"].__get__
_BASES = type.__dict__["__mro__"].__get__
_DICT = type.__dict__["__dict__"].__get__
_OF_MODULE: Any = vars(types.ModuleType)["__dict__"]
_MOST_ITEMS = 20_000
_MOST_PARTS = 100
_STORED = (types.GetSetDescriptorType, types.MemberDescriptorType)
_PLAIN = (bool, int, float, complex, str, bytes, tuple, list, dict, set, frozenset, type(None))
_OF_MODULES = ("_parameters", "_buffers", "_modules")
_OF_TENSORS = frozenset({"shape", "dtype", "device", "ndim", "layout", "requires_grad", "is_leaf"})


def name_of(kind: type) -> str:
    """Return the name of a class."""
    return str(_NAME(kind))


def module_of(kind: type) -> str:
    """Return the name of the module in which a class was defined."""
    found = _DICT(kind).get("__module__", "builtins")
    return found if type(found) is str else ""


def qualified_name(kind: type) -> str:
    """Return module and name of a class."""
    return f"{module_of(kind)}.{_QUALNAME(kind)}"


def is_exactly(value: object, kinds: Iterable[type]) -> bool:
    """True if the object's class is one of `kinds`; `in` would ask a metaclass."""
    kind = type(value)
    return any(kind is each for each in kinds)


def is_kind(value: object, wanted: object) -> bool:
    """True if the object's class is `wanted`, or derives from it."""
    return wanted is not None and any(each is wanted for each in _BASES(type(value)))


def is_class(value: object) -> bool:
    """True for a class."""
    return is_kind(value, type)


def loaded(module: str, name: str) -> Any:
    """Return a part of a module if that is imported, else None."""
    found = sys.modules.get(module)
    return module_dict(found).get(name) if found is not None else None


def module_dict(module: object) -> dict[str, Any]:
    """Return what is stored in a module: modules may compute their attributes."""
    return _OF_MODULE.__get__(module) if is_kind(module, types.ModuleType) else {}


def is_tensor(value: object) -> bool:
    """True for a tensor, of any subclass."""
    return is_kind(value, loaded("torch", "Tensor"))


def is_of_torch(kind: type) -> bool:
    """True for a class that torch itself defines: another may call itself so."""
    home = module_of(kind)
    return (home == "torch" or home.startswith("torch.")) and loaded(home, name_of(kind)) is kind


def item(owner: object, key: object) -> Any:
    """Return an item of a dictionary or a sequence by a plain key, or `MISSING`; compares with no foreign key."""
    if is_kind(owner, dict):
        if not is_exactly(key, (str, int)):
            return MISSING
        table: Any = owner
        items = islice(dict.items(table), _MOST_ITEMS)
        return next((value for known, value in items if type(known) is type(key) and known == key), MISSING)
    if is_exactly(owner, (list, tuple, str)) and type(key) is int:
        sequence: Any = owner
        return sequence[key] if -len(sequence) <= key < len(sequence) else MISSING
    return MISSING


def stored(value: object) -> dict[str, Any]:
    """Return the attributes stored in an object itself: no property, no `__getattr__`."""
    if is_kind(value, types.ModuleType):
        return module_dict(value)
    for kind in _BASES(type(value)):
        getter = _DICT(kind).get("__dict__")
        if getter is not None:
            found: Any = getter.__get__(value) if is_exactly(getter, _STORED) else None
            return found if is_kind(found, dict) else {}
    return {}


def parts_of(value: object) -> Iterator[tuple[str, Any]]:
    """Yield the public attributes that are stored in an object, and the parts of a torch module, with their names."""
    own = stored(value)
    for table in (own, item(own, "_modules")):
        for name, part in islice(dict.items(table), _MOST_PARTS) if is_kind(table, dict) else ():
            if type(name) is str and name.isidentifier() and not name.startswith("_"):
                yield name, part


def attribute(value: object, name: str) -> Any:
    """Return an attribute that is stored in an object, its class or a torch module's tables, or `MISSING`."""
    own = stored(value)
    for table in (own, *(item(own, part) for part in _OF_MODULES)):
        found = item(table, name)
        if found is not MISSING:
            return found
    if is_tensor(value):
        return tensor_property(value, name)
    for kind in _BASES(value if is_class(value) else type(value)):
        found = _DICT(kind).get(name, MISSING)
        if found is MISSING:
            continue
        if type(found) is types.MemberDescriptorType and not is_class(value):
            try:
                return found.__get__(value)
            except AttributeError:
                return MISSING
        return found if is_exactly(found, _PLAIN) else MISSING
    return MISSING


def stored_in_class(value: object, name: str) -> Any:
    """Return what the class of an object stores under a name, such as a function or a property, or `MISSING`."""
    return member_of(type(value), name)


def member_of(kind: type, name: str) -> Any:
    """Return what a class or one that it derives from stores under a name, or `MISSING`."""
    for each in _BASES(kind):
        found = _DICT(each).get(name, MISSING)
        if found is not MISSING:
            return found
    return MISSING


def tensor_property(value: Any, name: str) -> Any:
    """Return the shape, the dtype or the like of a tensor, if its class is torch's."""
    kind = type(value)
    torch = module_dict(sys.modules["torch"])
    if name not in _OF_TENSORS or not is_of_torch(kind) or name_of(kind).startswith("Uninitialized"):
        return MISSING
    with torch["_C"].DisableTorchFunction():
        return getattr(torch["_C"].TensorBase, name).__get__(value)


def class_of_value(value: object) -> type:
    """Return the class of an object, or the class itself."""
    return value if is_class(value) else type(value)  # type: ignore[return-value]


def bases(kind: type) -> Iterator[type]:
    """Yield a class and those that it derives from."""
    yield from _BASES(kind)


def members(kind: type) -> dict[str, Any]:
    """Return what a class itself stores, by name."""
    return dict(_DICT(kind))
