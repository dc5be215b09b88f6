"""Extension of the Jupyter server that inspects a kernel from outside while the kernel can't answer.

Front ends use it if the kernel's own channels are silent, for instance because a thread is holding the GIL. Apart from
requests to end ranks, it only reads, and writes nothing but the request to the ranks in the kernel's folder
for their records. Its dependencies are imported at the first request.
"""

from __future__ import annotations

from typing import Any


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    """Return the module in which the server finds the extension."""
    return [{"module": "dtdebug.notebook.server"}]


def _load_jupyter_server_extension(app: Any) -> None:
    """Add the handlers to a server."""
    from dtdebug.notebook.server.handlers import handlers

    app.web_app.add_handlers(".*$", handlers(app.web_app.settings["base_url"]))
