"""A small extension of the Jupyter server: it looks at a kernel from outside while the kernel can't answer.

Front ends ask it where the kernel's own channels are silent, for a thread is holding the GIL. It only looks:
nothing is ended or interrupted, and nothing written but the request to the ranks in the folder that the kernel has made
for their records. What it needs to look is imported when it is first asked.
"""

from __future__ import annotations

from typing import Any


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    """Where the server finds the extension."""
    return [{"module": "dtdebug.server"}]


def _load_jupyter_server_extension(app: Any) -> None:
    """Adds the handlers to a server."""
    from dtdebug.server.handlers import handlers

    app.web_app.add_handlers(".*$", handlers(app.web_app.settings["base_url"]))
