"""The amount of work that a fix takes."""

from __future__ import annotations

from typing import Literal

Effort = Literal["glance", "edit", "restart", "rerun", "reinstall", "hardware"]
