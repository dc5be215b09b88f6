"""Named cases of synthetic flight-recorder dumps: layout, fault, format.

    python tests/flight_catalogue.py FOLDER

writes one folder for each, with the dumps and a truth.json.
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import flight_data as fr
import flight_jobs as jobs

Case = Callable[[], tuple[dict[int, Any], dict[str, Any]]]

DIRECT = ("skipped", "extra", "replaced", "wrong_size", "wrong_dtype", "not_arrived", "dead", "fabric")


def of(op: str, group: str | None = None) -> Callable[[jobs.Call], bool]:
    """Chooses calls of an operation, batched or not."""

    def fits(call: jobs.Call) -> bool:
        part = call.batch[0] if call.batch else call
        return part.op == op and group in (None, part.group)

    return fits


def cases() -> dict[str, tuple[str, Case]]:
    """Name -> format and what makes the dumps."""
    found: dict[str, tuple[str, Case]] = {}

    def add(
        name: str, layout: Callable[[], jobs.Job], fault: fr.Fault | None = None, form: str = "2.10", **more: Any
    ) -> None:
        found[name] = form, functools.partial(lambda: fr.make(layout(), fault, form, **more))

    sharded, gathers = of("_all_gather_base"), of("gather")
    for seed, kind in enumerate(DIRECT):
        culprit = (3 + seed) % 8
        fault = fr.Fault(kind, (culprit,))
        add(f"one-{kind}", jobs.one_group, fault, seed=seed)
        add(f"one-{kind}-timing", jobs.one_group, fr.Fault(kind, (0,), want=sharded), timing=True, seed=seed)
        add(f"3d-{kind}", jobs.three_d, fr.Fault(kind, (culprit + 4,)), seed=seed)
        add(f"active-{kind}", jobs.three_d, fr.Fault(kind, (culprit,)), "active", seed=seed)
        add(f"ring-{kind}", jobs.three_d, fr.Fault(kind, (culprit,), after=0.8), keep=12, skew=10**9, seed=seed)
    for form in ("2.9", "2.0", "1.4", "list", "json"):
        for kind in ("skipped", "replaced", "not_arrived"):
            add(f"v{form}-{kind}", jobs.one_group, fr.Fault(kind, (5,)), form)
    for kind in ("skipped", "not_arrived", "dead", "wrong_size"):
        add(f"3d-1.4-{kind}", jobs.three_d, fr.Fault(kind, (9,)), "1.4")
    add("one-wrong_root", jobs.one_group, fr.Fault("wrong_root", (5,), want=gathers))
    add("one-wrong_root-0", jobs.one_group, fr.Fault("wrong_root", (2,), want=gathers), "json")
    add("one-two-skip", jobs.one_group, fr.Fault("skipped", (2, 6)))
    add("one-two-not_arrived", jobs.one_group, fr.Fault("not_arrived", (2, 6)))
    last = jobs.collective("barrier", "0", 120, 1)
    add(
        "one-fewer-batches",
        lambda: jobs.one_group(final=last),
        fr.Fault("skipped", (6,), after=0.87, want=sharded, count=3),
    )
    add("3d-node-dead", jobs.three_d, fr.Fault("dead", tuple(range(8, 16))))
    add("3d-tp-skipped", jobs.three_d, fr.Fault("skipped", (11,), want=of("all_reduce", "2")))
    add("3d-dp-replaced", jobs.three_d, fr.Fault("replaced", (11,), want=of("all_reduce", "6")))
    add("3d-64-not_arrived", lambda: jobs.three_d(64, 3), fr.Fault("not_arrived", (37,)))
    add("3d-64-skipped", lambda: jobs.three_d(64, 3), fr.Fault("skipped", (37,)))
    same = fr.Fault("extra", (3,), replacement=lambda call: call._replace(line=261))
    add("one-extra-same", jobs.one_group, same)
    for batched in (False, True):
        name = "pp-batched" if batched else "pp"
        layout = functools.partial(jobs.pipeline, batched=batched)
        add(f"{name}-not_arrived", layout, fr.Fault("not_arrived", (5,)))
        add(f"{name}-not_arrived-first", layout, fr.Fault("not_arrived", (0,)), timing=True)
        add(f"{name}-skipped-recv", layout, fr.Fault("skipped", (5,), want=of("recv")))
        add(f"{name}-skipped-send", layout, fr.Fault("skipped", (2,), want=of("send")))
        add(f"{name}-skipped-collective", layout, fr.Fault("skipped", (4,)))
        add(f"{name}-dead", layout, fr.Fault("dead", (7,)))
        add(f"{name}-healthy", layout)
        add(f"{name}-active-not_arrived", layout, fr.Fault("not_arrived", (3,)), "active")
    for kind in ("skipped", "not_arrived", "dead"):
        add(f"cp-{kind}", jobs.ring, fr.Fault(kind, (3,), want=of("send")))
        add(f"cp-{kind}-collective", jobs.ring, fr.Fault(kind, (3,)), timing=True)
    add("cp-active-not_arrived", jobs.ring, fr.Fault("not_arrived", (3,), want=of("send")), "active")
    add("cp-healthy", jobs.ring)
    for kind in ("skipped", "replaced", "not_arrived", "dead"):
        add(f"moe-{kind}", jobs.experts, fr.Fault(kind, (6,), want=of("all_to_all")))
    add("moe-healthy", jobs.experts)
    add("moe-wrong_size", jobs.experts, fr.Fault("wrong_size", (1,)))
    for kind in ("skipped", "not_arrived", "extra"):
        add(f"sub-{kind}", jobs.sub_groups, fr.Fault(kind, (6,)))
    add("sub-healthy", jobs.sub_groups)
    add("one-healthy", jobs.one_group)
    add("3d-healthy", jobs.three_d)
    add("one-in-flight", jobs.one_group, in_flight=True)
    add("3d-in-flight", jobs.three_d, in_flight=True)
    add("3d-in-flight-active", jobs.three_d, form="active", in_flight=True)
    return found


def age(name: str) -> float:
    """Seconds between the last call of a case and its dumps."""
    return 0.05 if "in-flight" in name else 600.0


def main(folder: Path) -> None:
    """Write all cases below a folder."""
    for name, (form, case) in cases().items():
        dumps, truth = case()
        fr.write(folder / name, dumps, form, age=age(name))
        (folder / name / "truth.json").write_text(json.dumps(truth, indent=1))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
