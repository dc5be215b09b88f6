"""Fixtures and settings that several levels of tests share."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Machines are slow and noisy: no example has a time limit. CI tries the same examples each time, so that it tells of
# the change at hand; new ones are looked for on developers' machines.
settings.register_profile(
    "dtdebug", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=bool(os.environ.get("CI"))
)
settings.load_profile("dtdebug")


@pytest.fixture(scope="session")
def samples() -> Path:
    """The folder of recorded inputs, one sub-folder for each symptom."""
    return Path(__file__).parent / "samples"
