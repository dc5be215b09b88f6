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
    # For a message that is not JSON pygls logs a traceback, and our report_server_error() logs one line.
    logging.getLogger("pygls.server").addFilter(lambda record: record.msg != "Unable to handle message")
    server = create(stdout)
    gc.freeze()
    start_server(server, list(arguments) if arguments is not None else None)


if __name__ == "__main__":
    main()
