"""Runs the whole laboratory of doctor: every fault and healthy network, with figures; optionally next to real gloo.

python benchmarks/doctor.py [--gloo] [NAME ...]; needs root, iproute2 and nft.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import doctor_faults
import doctor_lab
import hosts_lab


def main() -> int:
    """Run the named cases, or all; the exit status is 1 if a fault was missed or a healthy network was blamed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--gloo", action="store_true", help="run real torchrun too, and compare the forecast")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    if why := hosts_lab.can_be_made() or doctor_lab.can_filter():
        print(why)
        return 2
    chosen = options.names or [*doctor_faults.HEALTHY, *doctor_faults.FAULTS]
    right = [_one(name, gloo=options.gloo) for name in chosen]
    cause, host, forecast = (list(filter(lambda x: x is not None, column)) for column in zip(*right, strict=True))
    print(f"cause {sum(cause)}/{len(cause)}  host {sum(host)}/{len(host)}  forecast {sum(forecast)}/{len(forecast)}")
    return 0 if all(cause) and all(host) and all(forecast) else 1


def _one(name: str, *, gloo: bool) -> tuple[bool, bool, bool | None]:
    fault = doctor_faults.FAULTS.get(name)
    net = fault.net if fault else doctor_lab.NET
    with tempfile.TemporaryDirectory() as folder, doctor_lab.Lab(folder, net=net) as lab:
        launch = (fault.put if fault else doctor_faults.HEALTHY[name])(lab) or {}
        began = time.monotonic()
        found = lab.doctors(**launch)
        seconds = time.monotonic() - began
        every = [f for report, _ in found.values() for f in report["findings"]]
        faults = {f["id"] for f in every if f["severity"] == "fault"}
        forecast = found[0][0].get("forecast", {}).get("gloo", "")
        agrees = None
        truth = ""
        if gloo and not (fault and not fault.gloo):
            done = lab.gloo(seconds=45)
            truth = "connects" if done else "fails"
            agrees = forecast == truth
        if fault is None:
            cause = host = not faults and all(status == 0 for _, status in found.values())
        else:
            mine = [f for f in every if f["id"] in fault.ids and f["severity"] == fault.severity]
            cause = bool(mine)
            named = {h for f in every for h in f["hosts"]} | {h for f in every for p in f["pairs"] for h in p}
            host = fault.hosts <= named
            cause = (
                cause and not (faults - fault.ids - {"DR201"}) if fault.severity == "fault" else cause and not faults
            )
    said = sorted({(f["id"], f["severity"], f["text"][:150]) for f in every})
    mark = "ok " if cause and host and agrees is not False else "BAD"
    print(f"{mark} {name:34} {seconds:5.1f} s  cause {cause} host {host} {forecast} {truth}", flush=True)
    for row in said:
        print("      ", *row, flush=True)
    for report, _ in found.values():
        if report.get("printed"):
            print("       PRINTED", report["printed"][-600:], flush=True)
    return cause, host, agrees


if __name__ == "__main__":
    sys.exit(main())
