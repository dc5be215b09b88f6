"""Takes the pictures of docs/images anew: runs the tests that photograph a real JupyterLab, and keeps what they took.

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
PICTURES = {
    "card": "test_labextension.py::test_the_card_can_be_read_in_every_theme[Light]:lab-theme-light",
    "dark": "test_hang_lab.py::test_a_page_that_has_not_started_the_cell_is_told_too:hang-dark",
    "hang": "test_hang_lab.py::test_eight_ranks_a_quiet_user_and_a_page_that_is_loaded_again:hang-eight",
    "ranks-4096": "test_ranks_view.py::test_it_fits_in_a_panel_of_any_width[many(4096)-800-light]:ranks-many4096-800",
    "why": "test_panel.py::test_the_launcher_opens_a_wizard_that_needs_no_notebook:panel-why-asked",
    "wizard": "test_panel.py::test_from_two_failed_ranks_to_a_green_run[lab]:panel-lab-end",
}
"""Name in docs/images -> the test, and what it calls the picture."""
SECONDS = 300


def take(test: str, shot: str, shots: str) -> Path | None:
    """The picture that a test takes; None if the test fails or takes none."""
    command = [sys.executable, "-m", "pytest", "-q", str(DOCS.parent / "tests" / test)]
    done = subprocess.run(command, env={**os.environ, "DTDEBUG_SHOTS": shots}, timeout=SECONDS, check=False)
    picture = Path(shots) / f"{shot}.png"
    return picture if done.returncode == 0 and picture.is_file() else None


def main() -> int:
    """Status 1 if a picture could not be taken."""
    failed = []
    for name, wanted in PICTURES.items():
        with tempfile.TemporaryDirectory() as shots:
            test, _, shot = wanted.rpartition(":")
            picture = take(test, shot, shots)
            if picture is None:
                failed.append(name)
            else:
                shutil.copy(picture, DOCS / "images" / f"{name}.png")
    if failed:
        print(f"not taken: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
