"""The server for jupyter-lsp by itself, for those who have no other Python server there.

It is registered nowhere: jupyterlab-lsp starts one server for a document, and ours in place of
python-lsp-server would take completion and jump-to-definition away. With python-lsp-server the
plugin beside this module does the same work. To have the server alone, in
`jupyter_server_config.py`:

    from dtdebug_lsp.jupyter import spec
    c.LanguageServerManager.language_servers = spec()
"""

from __future__ import annotations

import sys
from typing import Any


def spec(app: object = None) -> dict[str, Any]:
    """How jupyter-lsp starts the server (https://jupyterlab-lsp.readthedocs.io/en/latest/Configuring.html)."""
    return {
        "dtdebug": {
            "version": 2,
            "argv": [sys.executable, "-m", "dtdebug_lsp"],
            "languages": ["python"],
            "mime_types": ["text/x-python", "text/x-ipython"],
            "display_name": "dtdebug",
        }
    }
