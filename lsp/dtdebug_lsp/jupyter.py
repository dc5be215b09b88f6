"""Standalone server for jupyter-lsp, for users without another Python server there.

It is not registered by default: jupyterlab-lsp starts one server per document, and ours instead of
python-lsp-server would remove completion and jump-to-definition. With python-lsp-server, the module
`pylsp_plugin` does the same work. To use the server alone, add to `jupyter_server_config.py`:

    from dtdebug_lsp.jupyter import spec
    c.LanguageServerManager.language_servers = spec()
"""

from __future__ import annotations

import sys
from typing import Any


def spec(app: object = None) -> dict[str, Any]:
    """Return the specification by which jupyter-lsp starts the server.

    https://jupyterlab-lsp.readthedocs.io/en/latest/Configuring.html
    """
    return {
        "dtdebug": {
            "version": 2,
            "argv": [sys.executable, "-P", "-m", "dtdebug_lsp"],
            "languages": ["python"],
            "mime_types": ["text/x-python", "text/x-ipython"],
            "display_name": "dtdebug",
        }
    }
