"""Starts the server: `python -m dtdebug_lsp`, on standard input and output unless `--tcp` or `--ws` is given."""

from __future__ import annotations

import gc
import logging
import os
import sys
from collections.abc import Sequence
from functools import partial
from typing import BinaryIO


def _claim() -> BinaryIO:
    """Reserve standard output for messages; everything else that prints goes to standard error."""
    stdout = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return stdout


def _import_protocol() -> None:
    """Import the 554 classes of the protocol without the methods that no server calls, in half the time."""
    import attrs

    define = attrs.define
    attrs.define = partial(define, slots=False, repr=False, eq=False)
    try:
        import lsprotocol.types  # noqa: F401
    finally:
        attrs.define = define


def _drop_traceback(record: logging.LogRecord) -> bool:
    """Let of pygls' records only lines pass: for a message that is not understood it logs a traceback.

    One that is not JSON is a line of our `report_server_error()`.
    """
    if not record.name.startswith("pygls"):
        return True
    if record.msg == "Unable to handle message":
        return False
    record.exc_info = record.exc_text = None
    return "Traceback (" not in record.getMessage()


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until the client disconnects."""
    stdout = _claim()
    gc.disable()  # imports create no garbage; later the session collects it when no one types
    try:
        _import_protocol()
        from pygls.cli import start_server
    except ImportError:
        print('dtdebug: the language server needs pygls: python -m pip install "dtdebug[lsp]"', file=sys.stderr)
        sys.exit(2)
    from dtdebug_lsp.server import create

    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("pygls").setLevel(logging.ERROR)  # it warns of each answer too late to cancel
    for handler in logging.getLogger().handlers:
        handler.addFilter(_drop_traceback)
    server = create(stdout)
    gc.freeze()
    start_server(server, list(arguments) if arguments is not None else None)


if __name__ == "__main__":
    main()
