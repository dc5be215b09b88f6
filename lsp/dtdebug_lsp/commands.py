"""Commands that a client can run on the server."""

from __future__ import annotations

import asyncio
import atexit
import gc
import logging
import re
import shutil
import sys
import tempfile
import uuid
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from dtdebug_lsp import workspace
from dtdebug_lsp.documents import canonical_uri
from dtdebug_lsp.modules import Modules
from dtdebug_lsp.session import Server
from dtdebug_taxonomy import __version__
from dtdebug_taxonomy.checks import load as checks
from dtdebug_taxonomy.knowledge.loader import load as knowledge
from dtdebug_taxonomy.presentation.explain import UnknownNameError
from dtdebug_taxonomy.presentation.explain import explain as explanation
from dtdebug_taxonomy.presentation.hovers import hover

log = logging.getLogger(__name__)

_COLLECT = 200
"""Number of files of a workspace after which garbage is collected."""


def warm() -> None:
    """Load what hovers and explanations need, before the user asks."""
    hover("torch.distributed.barrier", knowledge())
    gc.freeze()  # permanent objects need not be scanned again


def symptoms(ls: Server) -> list[dict[str, str]]:
    """Return all symptoms by code and title."""
    return [{"code": s.code, "title": s.title} for s in knowledge().symptoms.values()]


def explain(ls: Server, name: str, *show: bool) -> str:
    """Return the page of a symptom, fix pattern, evidence, observation or check; `show` lets the client open it."""
    try:
        text = explanation(knowledge(), str(name))
    except UnknownNameError as error:
        return str(error)
    if show and show[0] and not ls.client_explains and ls.can("window.show_document.support"):
        file = _pages() / f"{re.sub(r'[^A-Za-z0-9.-]', '_', name)[:80]}.md"
        file.write_text(text, encoding="utf-8")
        ls.window_show_document(types.ShowDocumentParams(file.as_uri(), take_focus=True))
    return text


@lru_cache(maxsize=1)
def _pages() -> Path:
    """Return a folder for pages that a client opens as files; it is removed when the server exits."""
    folder = tempfile.mkdtemp(prefix="dtdebug-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def dismiss_failure(ls: Server, *ids: str) -> bool:
    """Dismiss a failed run by its id, else the latest; return whether there was one."""
    found = ls.handoff.dismiss(str(ids[0]) if ids and ids[0] else None)
    ls.show_failures(force=True)
    return found


async def check_workspace(ls: Server) -> dict[str, int]:
    """Check all files of the workspace and publish the problems in those that are not open."""
    paths = await asyncio.to_thread(workspace.files, ls.folders())
    token = await _begin(ls, len(paths))
    wrong, done, modules = 0, 0, Modules()
    before, ls.scanned = ls.scanned, {}
    shown: dict[str, str] = dict.fromkeys(before, "")
    try:
        for done, path in enumerate(paths, 1):
            if token is not None and ls.work_done_progress.tokens[token].cancelled():
                break
            wrong += await _check_file(ls, path, shown, modules)
            if done % _COLLECT == 0:
                await asyncio.to_thread(gc.collect)
            if token is not None and done % 20 == 0:
                report = types.WorkDoneProgressReport(
                    message=f"{done} of {len(paths)} files", percentage=done * 100 // len(paths)
                )
                ls.work_done_progress.report(token, report)
    finally:
        for key, uri in shown.items():  # files without problems now
            if not uri:
                ls.publish(key)
        if token is not None:
            ls.work_done_progress.end(token, types.WorkDoneProgressEnd(message=f"{wrong} problems in {done} files"))
            ls.work_done_progress.tokens.pop(token, None)
    return {"files": done, "problems": wrong}


async def _check_file(ls: Server, path: Path, shown: dict[str, str], modules: Modules) -> int:
    try:
        uri, found = await asyncio.to_thread(workspace.check, path, ls.configuration, ls.documents.positions, modules)
    except Exception:
        log.exception("%s could not be checked", path)
        return 0
    if found:
        ls.scanned[canonical_uri(uri)] = found
        shown[canonical_uri(uri)] = uri
        if ls.documents.get(uri) is None:
            ls.publish(uri)
    return len(found)


async def _begin(ls: Server, total: int) -> str | None:
    """Show the progress if the client supports it; return its token or None."""
    if not ls.can("window.work_done_progress"):
        return None
    token = str(uuid.uuid4())
    try:
        await ls.work_done_progress.create_async(token)
    except JsonRpcException as error:
        log.warning("the client shows no progress: %s", error)
        return None
    begin = types.WorkDoneProgressBegin(title="dtdebug: checking the workspace", cancellable=True, percentage=0)
    ls.work_done_progress.begin(token, begin)
    return token


def print_debug_information(ls: Server) -> str:
    """Return what a bug report about the server needs, and log it."""
    rows = {
        "dtdebug": __version__,
        "Python": sys.version.split()[0],
        "columns": ls.documents.positions.encoding,
        "diagnostics": "asked for" if ls.pulls else "pushed",
        "settings": ls.configuration.editor,
        "folders": ls.folders(),
        "open": [f"{d.uri} (version {d.version}, {len(d.text)} characters)" for d in ls.documents],
        "checks": len(checks()),
        "failed runs shown": sum(map(len, ls.failed.values())),
    }
    text = "\n".join(f"{name}: {value}" for name, value in rows.items())
    log.warning("debug information\n%s", text)
    return text


COMMANDS: dict[str, Callable[..., Any]] = {
    "dtdebug.symptoms": symptoms,
    "dtdebug.explain": explain,
    "dtdebug.checkWorkspace": check_workspace,
    "dtdebug.dismissFailure": dismiss_failure,
    "dtdebug.printDebugInformation": print_debug_information,
}
