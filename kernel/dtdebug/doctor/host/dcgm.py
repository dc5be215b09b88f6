"""Runs NVIDIA's quick diagnostics (`--heavy`): `dcgmi diag --run 1 --json`, as DCGM 2 to 4 print it.

NVIDIA's manual promises no schema for the JSON: unrecognised output is reported, never counted as a pass.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import msgspec

from dtdebug.doctor.host.bounded_calls import answer_of
from dtdebug.doctor.types import HostProblem, Severity
from dtdebug.privacy.sanitize import one_line

LIMIT = 60.0
"""Seconds to wait; the quick tests normally take a few."""
_SAYS: dict[str, Severity] = {"fail": "fault", "warn": "warning"}
_MOST = 8


def run_diagnostics() -> tuple[list[HostProblem], str]:
    """Run dcgmi and return (problems of this host's devices, why they are unknown)."""
    if shutil.which("dcgmi") is None:
        return [], "dcgmi is not installed"
    text, why = answer_of(["dcgmi", "diag", "--run", "1", "--json"], LIMIT, "DCGM", failing=True)
    if why:
        return [], why
    return read(text)


def read(text: str) -> tuple[list[HostProblem], str]:
    """Return (problems, why they are unknown) from dcgmi's output."""
    start = text.find("{")
    try:
        said = msgspec.json.Decoder(dict[str, Any]).decode(text[start:] if start >= 0 else text)
    except msgspec.MsgspecError:
        return [], one_line(text.strip().rpartition("\n")[2], 160) or "dcgmi gave no answer"
    body = next((v for k, v in said.items() if k.startswith("DCGM") and isinstance(v, dict)), {})
    rows = list(_results(body))
    if not rows:
        return [], "dcgmi named no test"
    found = [
        HostProblem(
            id="DR610",
            text=f"{where}: {test}: {words or 'fails'}",
            measured=f"{test}: {status}",
            expected=f"{test}: Pass",
            severity=_SAYS[status.lower()],
        )
        for test, where, status, words in rows
        if status.lower() in _SAYS
    ]
    return found[:_MOST], ""


def _results(body: dict[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """Yield (test, device, status, warnings) of each result."""
    for category in _rows(body.get("test_categories")):
        for test in _rows(category.get("tests")):
            for result in _rows(test.get("results")):
                device = result.get("gpu_id", result.get("gpu_ids", result.get("entity_id")))
                kind = "device" if result.get("entity_group", "GPU") == "GPU" else str(result["entity_group"])
                where = "this host" if device is None else f"{kind} {device}"
                told = result.get("warnings") or result.get("warning") or []
                words = [w.get("warning", "") if isinstance(w, dict) else w for w in _as_list(told)]
                yield (
                    one_line(str(test.get("name", "a test")), 60),
                    one_line(where, 60),
                    str(result.get("status", "")).strip()[:20],
                    one_line("; ".join(map(str, words)), 300),
                )


def _rows(value: object) -> list[dict[str, Any]]:
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def _as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else [value]
