"""Fixtures that several levels of tests share."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def samples() -> Path:
    """The folder of recorded inputs, one sub-folder for each symptom."""
    return Path(__file__).parent / "samples"
