"""Variables in which the launchers tell a process the same thing by different names."""

from __future__ import annotations

from collections.abc import Container

from dtdebug_taxonomy.model.launch_variables import SAME


def other_launcher(name: str, environment: Container[str]) -> str:
    """Return the variable that the launcher of this job has set for what another launcher sets by `name`."""
    for names in SAME:
        if name in names:
            return next((each for each in names if each != name and each in environment), "")
    return ""
