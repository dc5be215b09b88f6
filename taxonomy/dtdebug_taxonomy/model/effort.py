"""How much work something is."""

from __future__ import annotations

from typing import Literal

Effort = Literal["glance", "edit", "restart", "rerun", "reinstall", "hardware"]
