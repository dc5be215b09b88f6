"""Takes the pictures of docs/images anew: runs the tests that drive a real JupyterLab, and keeps what they photograph.

python docs/images.py
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).parent
TESTS = ("test_labextension.py", "test_panel.py", "test_hang_lab.py", "test_ranks_view.py")
PICTURES = {
    "button": "lab-button",
    "card": "lab-card",
    "dark": "panel-dark",
    "gil": "hang-gil",
    "hang": "hang-panel",
    "history": "panel-history",
    "launcher": "panel-why-asked",
    "ranks": "hang-eight",
    "ranks-4096": "ranks-many4096-800",
    "wizard": "panel-lab-end",
}
"""Name in docs/images -> what the tests call it."""
SECONDS = 1_500


def main() -> int:
    """The status of the tests, or 1 if they have not taken a picture that is wanted."""
    with tempfile.TemporaryDirectory() as shots:
        tests = [str(DOCS.parent / "tests" / name) for name in TESTS]
        command = [sys.executable, "-m", "pytest", "-q", "-m", "browser", *tests]
        done = subprocess.run(command, env={**os.environ, "DTDEBUG_SHOTS": shots}, timeout=SECONDS, check=False)
        lacking = [shot for shot in PICTURES.values() if not (Path(shots) / f"{shot}.png").is_file()]
        for name, shot in PICTURES.items():
            if shot not in lacking:
                shutil.copy(Path(shots) / f"{shot}.png", DOCS / "images" / f"{name}.png")
    if lacking:
        print(f"not taken: {', '.join(lacking)}", file=sys.stderr)
    return done.returncode or bool(lacking)


if __name__ == "__main__":
    sys.exit(main())
