"""Short texts of values, that run no foreign code and compute nothing on a device."""

from __future__ import annotations

import pathlib
import sys
import types
from collections.abc import Iterable
from itertools import islice
from typing import Any

from dtdebug.account.lengths import length
from dtdebug.account.objects import (
    MISSING,
    attribute,
    is_class,
    is_exactly,
    is_kind,
    is_of_torch,
    is_tensor,
    item,
    loaded,
    module_dict,
    name_of,
    stored,
    tensor_property,
)
from dtdebug.privacy.sanitize import MASK, mask, plain
from dtdebug_taxonomy.model.account import MAX_TEXT, NamedValue

_LONG, _PART = 70, 30
"""Length of a string that is shown whole, and of its ends that are shown of a longer one."""
_DEEPEST, _ITEMS = 2, 5
_SMALL = 4096
"""Maximum number of elements of a tensor whose range is read."""
_HUGE, _RUBBISH = 10**15, 10**10
_NUMBERS = (bool, int, float, complex)
_PATHS = (pathlib.PosixPath, pathlib.PurePosixPath, pathlib.WindowsPath, pathlib.PureWindowsPath)
_RECORDS = ("argparse.Namespace", "types.SimpleNamespace")
_NOT_SHOWN = frozenset({"training", "call_super_init", "dump_patches", "inplace", "T_destination"})


def named(name: str, value: object, *, contents: bool = True) -> NamedValue:
    """Return an expression with the text of its value, without secrets; `contents`: read ranges of tensors."""
    return masked(name, "" if value is MISSING else text_of(value, contents=contents))


def masked(name: str, text: str) -> NamedValue:
    """Return an expression with a text, without secrets, escapes and line breaks."""
    name, text = _line(name), _line(text)
    whole = mask(f"{name} = {text}") if text else ""
    if whole and not whole.startswith(f"{name} = "):
        return NamedValue(mask(name), MASK)
    return NamedValue(mask(name), whole.removeprefix(f"{name} = "))


def one_line(text: str, longest: int = MAX_TEXT) -> str:
    """Return a text in one line, without secrets, as long as an account keeps it."""
    return _line(mask(plain(text[: 4 * MAX_TEXT])), longest)


def _line(text: str, longest: int = MAX_TEXT) -> str:
    return " ".join(plain(text[: 4 * MAX_TEXT]).split())[:longest]


def text_of(value: object, *, contents: bool = True) -> str:
    """Return a short text of a value; never raises."""
    try:
        return _text(value, 0, contents)[: 2 * MAX_TEXT]
    except Exception:  # an uninitialized parameter has no shape, a fake tensor no values
        return f"<{name_of(type(value))}>"


def _text(value: Any, depth: int, contents: bool) -> str:
    kind = type(value)
    if value is None or is_exactly(value, _NUMBERS):
        return _number(value)
    if kind is str:
        return repr(value) if len(value) < _LONG else f"{value[:_PART]!r}...{value[-_PART:]!r}"
    if is_tensor(value):
        return _tensor(value, contents)
    if is_exactly(value, (list, tuple, set, frozenset, dict, bytes, bytearray, range, slice)):
        return _container(value, depth, contents)
    if is_class(value):
        return f"class {name_of(value)}"
    if is_exactly(value, (types.FunctionType, types.BuiltinFunctionType, types.MethodType)):
        function = value.__func__ if kind is types.MethodType else value
        known = is_exactly(function, (types.FunctionType, types.BuiltinFunctionType))
        return f"<function {function.__name__}>" if known else "<method>"
    if kind is types.ModuleType:
        return f"<module {item(module_dict(value), '__name__')}>"
    if is_exactly(value, _PATHS):
        return f"Path({str(value)[-_LONG:]!r})"
    return _object(value, depth, contents)


def _number(value: Any) -> str:
    if type(value) is int and abs(value) >= _HUGE:
        return f"int of {value.bit_length()} bits" if value.bit_length() > 128 else str(value)
    return repr(value)


def _container(value: Any, depth: int, contents: bool) -> str:
    kind = name_of(type(value))
    if type(value) is range:
        return repr(value)
    if type(value) is slice:
        parts = [_text(part, _DEEPEST, contents) for part in (value.start, value.stop, value.step)]
        return f"slice({', '.join(parts)})"
    size = len(value)
    if is_exactly(value, (bytes, bytearray)) or depth >= _DEEPEST:
        return f"{kind} of {size}"
    if type(value) is dict:
        return _pairs(islice(value.items(), 2 * _ITEMS), size, depth, contents)
    parts = [_text(part, depth + 1, contents) for part in islice(value, _ITEMS)]
    if depth == 0 and len(set(parts)) > 1:  # tensors that differ in their contents alone
        alike = {_text(part, 1, contents=False) for part in islice(value, _ITEMS)}
        parts = [*alike] if len(alike) == 1 else parts
    if size > 1 and len(set(parts)) == 1 and (depth == 0 or size > _ITEMS):
        return f"{kind} of {size} x {parts[0]}"
    brackets = {"list": "[]", "tuple": "()"}.get(kind, "{}")
    inner = f"{brackets[0]}{', '.join(parts)}{', ...' if size > _ITEMS else ''}{brackets[1]}"
    return inner if is_exactly(value, (list, tuple)) and size <= _ITEMS else f"{kind} of {size}: {inner}"


def _pairs(pairs: Iterable[tuple[object, object]], size: int, depth: int, contents: bool) -> str:
    shown = []
    for key, value in pairs:
        word = repr(key[:_PART]) if type(key) is str else _text(key, _DEEPEST, contents)
        shown.append(f"{word}: {_secret(word, _text(value, depth + 1, contents))}")
    text = f"{{{', '.join(shown)}{', ...' if size > len(shown) else ''}}}"
    return text if depth or (size == len(shown) and len(text) < MAX_TEXT) else f"dict of {size}: {text}"


def _secret(name: str, text: str) -> str:
    """Return the text of a value, masked if the name says that it is secret."""
    name = name.strip("'\"")
    return mask(f"{name}={text}").removeprefix(f"{name}=")


def _object(value: Any, depth: int, contents: bool) -> str:
    kind, name = type(value), name_of(type(value))
    home = item(dict(type.__dict__["__dict__"].__get__(kind)), "__module__")
    home = home if type(home) is str else ""
    numpy = _numpy(value, name, contents)
    if numpy:
        return numpy
    if any(kind is loaded("torch", each) for each in ("dtype", "device", "Size", "layout")):
        return f"{name}{tuple(value)}" if name == "Size" else str(value)
    if kind is loaded("torch.distributed", "ProcessGroup"):
        return f"<ProcessGroup of {value.size()}>"
    if f"{home}.{name}" in _RECORDS:
        parts = [f"{k}={_secret(k, _text(v, 1, contents))}" for k, v in _plain_attributes(value)]
        return f"{name}({', '.join(parts[: 2 * _ITEMS])}{', ...' if len(parts) > 2 * _ITEMS else ''})"
    if is_kind(value, loaded("torch.nn", "Module")):
        inner = attribute(value, "module")
        if inner is not MISSING and is_of_torch(kind):
            return f"{name}({_text(inner, depth + 1, contents)})"
        sizes = [f"{k}={v}" for k, v in _plain_attributes(value) if type(v) is int and k not in _NOT_SHOWN]
        parts = item(stored(value), "_modules")
        if kind is loaded("torch.nn", "ModuleList") and is_kind(parts, dict):
            sizes = [f"len={dict.__len__(parts)}", *sizes]
        return f"{name}({', '.join(sizes[:_ITEMS])})"
    if is_kind(value, loaded("torch.utils.data", "DataLoader")):
        data, size = attribute(value, "dataset"), attribute(value, "batch_size")
        return f"{name}({_text(data, depth + 1, contents)}, batch_size={size if type(size) is int else None})"
    if is_kind(value, BaseException):
        return name
    size = length(value, lambda _: None) if is_of_torch(kind) else None
    return f"<{name}>" if size is None else f"<{name} of {size}>"


def _plain_attributes(value: object) -> list[tuple[str, Any]]:
    return [
        (key, each) for key, each in islice(stored(value).items(), 200) if type(key) is str and not key.startswith("_")
    ]


def _numpy(value: Any, name: str, contents: bool) -> str:
    numpy = sys.modules.get("numpy")
    if numpy is None or not (type(value) is loaded("numpy", "ndarray") or is_kind(value, loaded("numpy", "generic"))):
        return ""
    if name != "ndarray":
        return f"{name}({value.item()})" if loaded("numpy", name) is type(value) and name != "void" else f"<{name}>"
    text = f"ndarray{list(value.shape)} {value.dtype.name}"
    if contents and value.dtype.kind in "iu" and 0 < value.size <= _SMALL:
        low, high = value.min().item(), value.max().item()
        text += f" {low}..{high}" if low != high else f" {low}"
    return text


def _tensor(value: Any, contents: bool) -> str:
    kind, name = type(value), name_of(type(value))
    shape = tensor_property(value, "shape")
    if shape is MISSING:
        return f"<{name}>"
    sizes = ", ".join(str(size) if type(size) is int else "?" for size in shape)
    text = f"{name}[{sizes}] {str(tensor_property(value, 'dtype')).removeprefix('torch.')}"
    torch = module_dict(sys.modules["torch"])
    device = tensor_property(value, "device")
    if device.type != "cpu":
        text += f" on {device}"
    if name == "DTensor":
        placed = item(stored(value), "_spec")
        where = attribute(placed, "placements") if placed is not MISSING else MISSING
        return f"{text} {tuple(name_of(type(each)) for each in where)}" if type(where) is tuple else text
    exact = kind is torch["Tensor"] or kind is loaded("torch.nn", "Parameter")
    if not exact or tensor_property(value, "layout") is not torch["strided"]:
        return text
    with torch["_C"].DisableTorchFunction():
        if not value.is_contiguous():
            text += f", stride {tuple(value.stride())}"
        if contents and device.type == "cpu":
            text += _range(value.detach(), torch)
    return text


def _range(value: Any, torch: dict[str, Any]) -> str:
    """Return the least and the greatest element of a small tensor of integers, or a single number."""
    if torch["_C"]._len_torch_dispatch_stack() or not 0 < value.numel() <= _SMALL:  # noqa: SLF001 - a mode would be asked
        return ""
    if value.dtype.is_complex or (value.dtype.is_floating_point and value.numel() > 1):
        return ""
    if value.numel() == 1:
        number = value.item()
        return f" {number:.6g}" if type(number) is float else f" {number}"
    low, high = value.min().item(), value.max().item()
    if max(abs(low), abs(high)) > _RUBBISH:  # it was never filled
        return ""
    return f" {low}..{high}" if low != high else f" {low}"
