"""Starts the server: `python -m dtdebug_lsp`, on standard input and output unless `--tcp` or `--ws` is given."""

from __future__ import annotations

import gc
import logging
import os
import sys
from collections.abc import Sequence
from functools import partial
from typing import BinaryIO

from dtdebug_taxonomy.compiled import compiled_before


def _claim() -> BinaryIO:
    """Standard output for messages alone; whatever else prints in this process prints to standard error."""
    stdout = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return stdout


def _import_protocol() -> None:
    """Imports the 554 classes of the protocol without the methods that no server calls, in half of the time."""
    import attrs

    define = attrs.define
    attrs.define = partial(define, slots=False, repr=False, eq=False)
    try:
        import lsprotocol.types  # noqa: F401
    finally:
        attrs.define = define


def main(arguments: Sequence[str] | None = None) -> None:
    """Serves until the client goes."""
    stdout = _claim()
    gc.disable()  # of what is imported nothing is garbage, and looking for it takes a sixth of the start
    try:
        _import_protocol()
        from pygls.cli import start_server
    except ImportError:
        print('dtdebug: the language server needs pygls: python -m pip install "dtdebug[lsp]"', file=sys.stderr)
        sys.exit(2)
    from dtdebug_lsp.server import create

    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("pygls").setLevel(logging.ERROR)  # it warns of every answer that comes too late to be cancelled
    # A message that is no JSON: pygls writes a traceback, and our report_server_error() then a line of it.
    logging.getLogger("pygls.server").addFilter(lambda record: record.msg != "Unable to handle message")
    server = create(stdout)
    gc.freeze()
    gc.enable()
    start_server(server, list(arguments) if arguments is not None else None)


if __name__ == "__main__":
    with compiled_before():
        main()
