"""Converts measurements to answers for the wizard's questions, only if they settle them."""

from __future__ import annotations

from collections.abc import Sequence

from dtdebug.doctor.host.interface_choice import bare
from dtdebug.doctor.host.interfaces import is_loopback
from dtdebug.doctor.report_types import HostFinding, HostRow
from dtdebug.doctor.types import HostReport

_LAUNCHERS = {
    "torchrun": "torchrun",
    "mpirun": "mpirun",
    "horovodrun": "horovodrun",
    "deepspeed": "deepspeed",
    "ray": "ray",
}
_REACHED = ("address_and_port_reachable", {"DR101", "DR203", "DR204", "DR205", "DR116"}, "no")
_BY_FINDING = (
    _REACHED,
    ("port_in_use", {"DR202"}, "yes"),
    ("host_memory", {"DR502"}, "shm_small"),
    ("versions_match_across_nodes", {"DR401"}, "no"),
    ("same_paths_on_nodes", {"DR407", "DR510"}, "no"),
)


def observations(
    found: Sequence[HostFinding], rows: Sequence[HostRow], looks: Sequence[HostReport], *, several: bool
) -> dict[str, tuple[str, str]]:
    """Return observation -> (value, how it is known)."""
    said: dict[str, tuple[str, str]] = {}
    launch = looks[0].launch
    if launch.launcher in _LAUNCHERS:
        said["launcher"] = (_LAUNCHERS[launch.launcher], "the launch command")
    if launch.launcher:
        count = f"the launch command starts {launch.nodes} host{'s' * (launch.nodes != 1)}"
        said["nodes"] = ("multiple" if several else "single", count)
    if why := next((look.container for look in looks if look.container), ""):
        said["container"] = ("yes", why)
    cards = [_cards(look) for look in looks]
    if several and all(cards):
        most = max(cards, key=len)
        said["several_network_interfaces"] = ("yes" if len(most) > 1 else "no", f"up: {', '.join(most[:6])}")
    for key, ids, value in _BY_FINDING:
        one = next((f for f in found if f.id in ids and f.severity != "hint"), None)
        if one is not None:
            said[key] = (value, f"{one.id}: {one.text}"[:200])
    if several and all(row.came for row in rows) and len(rows) >= launch.nodes:
        said["address_and_port_reachable"] = ("yes", f"all {len(rows)} hosts reached {launch.endpoint}")
        said["port_in_use"] = ("no", f"{rows[0].host} listened at {launch.endpoint}")
    return said


def _cards(look: HostReport) -> list[str]:
    """Return the interfaces that are up and have a non-loopback address."""
    return [c.name for c in look.interfaces if c.up and any(not is_loopback(bare(a)) for a in c.addresses)]
