"""Reads logs in object stores (`s3://`, `gs://`, `abfs://`) through fsspec, if it is installed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dtdebug.recorded.log_files.excerpt import LogError

_ADDRESS = re.compile(r"(s3|s3a|gs|gcs|abfs|abfss|az|adl|hdfs|oci|sftp|memory)://")
_MOST = 1 << 18
_BLOCK = 8 << 20
"""Bytes fetched at once."""


def is_address(path: str) -> bool:
    """True if a path names an object store."""
    return _ADDRESS.match(path) is not None


def list_objects(address: str) -> Iterator[tuple[str, int, float]]:
    """Yield the objects that an address, folder or pattern names: address, size in bytes, time of last change or 0.

    Raises:
        LogError: there is no object, or the store can't be reached.

    """
    files, path = _store(address)
    scheme = address.partition("://")[0]
    try:
        names = files.glob(path, detail=True) if any(c in path for c in "*?[") else files.find(path, detail=True)
    except Exception as error:  # each store has its own exceptions
        raise LogError(f"{address}: {error}") from None
    rows = [row for row in names.values() if row.get("type") != "directory"][:_MOST]
    if not rows:
        raise LogError(f"{address}: no such object")
    for row in rows:
        name = str(row["name"])
        changed = row.get("LastModified") or row.get("mtime") or row.get("created")
        time = changed.timestamp() if hasattr(changed, "timestamp") else float(changed or 0)
        yield f"{scheme}://{name.lstrip('/')}", int(row.get("size") or 0), time


@contextmanager
def open_object(address: str) -> Iterator[Any]:
    """Open an object for reading bytes.

    Raises:
        OSError: the store does not return them.

    """
    files, path = _store(address)
    try:
        file = files.open(path, "rb", block_size=_BLOCK)
    except Exception as error:
        raise OSError(0, str(error)) from None
    with file:
        yield file


def _store(address: str) -> tuple[Any, str]:
    try:
        import fsspec  # type: ignore[import-untyped,import-not-found,unused-ignore]
    except ImportError:
        raise LogError(f"{address}: needs the package fsspec: pip install 'dtdebug[logs]'") from None
    try:
        files, path = fsspec.core.url_to_fs(address)
    except ImportError as error:  # names the package of this store
        raise LogError(f"{address}: {error}") from None
    return files, path
