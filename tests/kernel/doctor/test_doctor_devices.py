"""Devices and ports of InfiniBand, from what drivers and the kernel were recorded to say; the ways there are real."""

import json
import os
import subprocess
import sys
import textwrap

import pytest

from dtdebug.doctor.host import dcgm, devices, fabric
from dtdebug.doctor.judge import report as judge_report
from dtdebug.doctor.types import Arrival, Board, Choice, HostReport, Launch

TOPOLOGY = """\
\t\x1b[4mGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m
GPU0\t X \tNV18\tPIX\t0-47\t0\t\tN/A
GPU1\tNV18\t X \tSYS\t48-95\t1\t\tN/A
NIC0\tPIX\tSYS\t X \t\t\t\t

Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)
"""
NVML = """
class Row:
    def __init__(self, **more): self.__dict__.update(more)
class NVMLError(Exception): pass
def nvmlInit(): pass
def nvmlSystemGetDriverVersion(): return b"535.161.08"
def nvmlDeviceGetCount(): return 3
def nvmlDeviceGetHandleByIndex(i): return i
def nvmlDeviceGetName(h): return b"NVIDIA H100 80GB HBM3"
def nvmlDeviceGetMemoryInfo(h): return Row(total=85520809984, used=(72 << 30) if h == 2 else 512 << 20)
def nvmlDeviceGetComputeRunningProcesses(h): return [Row(pid=4711, usedGpuMemory=72 << 30)] if h == 2 else []
def nvmlDeviceGetRemappedRows(h): return (0, 2, h == 1, False)
def nvmlDeviceGetMigMode(h): raise NVMLError("Not Supported")
def nvmlDeviceGetCurrentClocksThrottleReasons(h): return 0x40 if h == 0 else 0x1
def nvmlDeviceGetCurrPcieLinkWidth(h): return 16
def nvmlDeviceGetMaxPcieLinkWidth(h): return 16
def nvmlDeviceGetNvLinkState(h, k):
    if k > 17: raise NVMLError("Invalid Argument")
    return 0 if h == 1 and k == 3 else 1
"""


@pytest.fixture
def driver(tmp_path, monkeypatch):
    """A host on which NVIDIA's driver says what was recorded."""
    (tmp_path / "pynvml.py").write_text(NVML)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    monkeypatch.setattr(devices, "_NVIDIA", (tmp_path,))
    monkeypatch.setattr(devices, "find_spec", lambda _: True)
    return tmp_path


def test_what_the_driver_says_becomes_problems_of_single_devices(driver):
    """Heat on 0; rows that wait and a link that is down on 1; an earlier run on 2; idle clocks are no problem."""
    seen = devices.devices()
    assert (len(seen.boards), seen.driver, seen.why) == (3, "535.161.08", "")
    found = [(p.id, p.text) for p in devices.judge(seen.boards)]
    assert [(number, text.partition(":")[0]) for number, text in found] == [
        ("DR606", "device 1"),
        ("DR607", "device 0"),
        ("DR608", "device 1"),
        ("DR609", "device 2"),
    ]
    assert "4711" in found[-1][1]
    assert not devices.judge([Board(name="H100", slowed=0x1, links=(1,) * 18, width=16, used=1 << 29)] * 8)


def test_a_driver_that_hangs_or_refuses_is_said(driver, monkeypatch):
    """A child that gives no answer is ended; one that fails is quoted."""
    (driver / "pynvml.py").write_text("import time\ndef nvmlInit(): time.sleep(60)\n")
    monkeypatch.setattr(devices, "_ASKING", 1.0)
    assert "no answer" in devices.devices().why
    monkeypatch.setattr(devices, "_ASKING", 20.0)
    (driver / "pynvml.py").write_text("def nvmlInit(): raise RuntimeError('Driver/library version mismatch')\n")
    assert "version mismatch" in devices.devices().why


def test_connections_between_devices_are_read(tmp_path, driver, monkeypatch):
    """By the command itself, in the form of drivers that underline the head; cards beside the devices are left out."""
    command = tmp_path / "nvidia-smi"
    command.write_text(f"#!{sys.executable}\nprint({TOPOLOGY!r})\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert devices.topology() == "X NV18\nNV18 X"
    assert devices.matrix("garbage") == ""
    old = "GPU0 GPU1 mlx4_0 CPU Affinity\nGPU0  X  SOC PHB 0-9,20-29\nGPU1 SOC  X  SOC 10-19\nmlx4_0 PHB SOC  X \n"
    assert devices.matrix(f"# nvidia-smi topo -m\n{old}") == "X SOC\nSOC X"
    assert devices.matrix("\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \t0-31\t0\t\tN/A\n") == "X"


@pytest.mark.parametrize(
    ("head", "device"),
    [("DCGM GPU Diagnostic", {"gpu_ids": "1"}), ("DCGM Diagnostic", {"entity_group": "GPU", "entity_id": 1})],
)
def test_what_dcgm_says_against_a_device_is_a_fault(head, device, tmp_path, monkeypatch):
    """By dcgmi itself, which fails where a test does; in the forms of DCGM 3 and 4; an answer in words is quoted."""
    told = {"warning": "Pending page retirements for GPU 1", "error_id": 20, "error_severity": 6}
    tests = [
        {"name": "Denylist", "results": [{"gpu_id": "0", "status": "Pass"}]},
        {"name": "Page Retirement/Row Remap", "results": [{**device, "status": "Fail", "warnings": [told]}]},
        {"name": "PCIe", "results": [{"gpu_id": "0", "status": "Skip"}]},
    ]
    answer = {head: {"version": "3.3.1", "test_categories": [{"category": "Deployment", "tests": tests}]}}
    command = tmp_path / "dcgmi"
    command.write_text(f"#!{sys.executable}\nimport sys\nprint({json.dumps(answer)!r})\nsys.exit(226)\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    found, why = dcgm.run_diagnostics()
    assert [(p.id, p.severity, why) for p in found] == [("DR610", "fault", "")]
    assert found[0].text == "device 1: Page Retirement/Row Remap: Pending page retirements for GPU 1"
    refused = "Error: Unable to connect to host engine. Host engine connection invalid/disconnected."
    assert ([], refused) == dcgm.read(f"{refused}\n")
    assert ([], "dcgmi named no test") == dcgm.read(json.dumps({head: {"version": "4.2.3"}}))


def tree(home, **ports):
    for name, (state, rate) in ports.items():
        place = home / name / "ports" / "1"
        place.mkdir(parents=True)
        (place / "state").write_text(f"{'4' if state == 'ACTIVE' else '1'}: {state}\n")
        (place / "phys_state").write_text("5: LinkUp\n" if state == "ACTIVE" else "2: Polling\n")
        (place / "rate").write_text(f"{rate}\n")
        (place / "link_layer").write_text("InfiniBand\n")
    return fabric.ports(home)


def test_adapters_are_held_against_what_nccl_is_told(tmp_path):
    """Prefixes, exact names and names left out, as NCCL's manual has them."""
    found = tree(tmp_path, mlx5_0=("ACTIVE", "400 Gb/sec (4X NDR)"), mlx5_10=("DOWN", "40 Gb/sec (4X QDR)"))
    assert [(p.name, p.state, p.link) for p in found] == [
        ("mlx5_0:1", "ACTIVE", "LinkUp"),
        ("mlx5_10:1", "DOWN", "Polling"),
    ]
    ids = {
        wanted: [p.id for p in fabric.judge(found, {"NCCL_IB_HCA": wanted})]
        for wanted in ("", "mlx5", "mlx5_0:1", "=mlx5_0", "^mlx5_10", "=mlx5_1", "mlx5_2", "mlx5_10", "^mlx5_7")
    }
    assert ids == {
        "": [],
        "mlx5": [],
        "mlx5_0:1": [],
        "=mlx5_0": [],
        "^mlx5_10": [],
        "=mlx5_1": ["DR604"],
        "mlx5_2": ["DR604"],
        "mlx5_10": ["DR605"],
        "^mlx5_7": [],
    }


def test_a_port_that_is_slower_on_one_host_is_named(tmp_path):
    """What is down everywhere is nobody's fault."""
    usual = {"mlx5_0": ("ACTIVE", "400 Gb/sec (4X NDR)"), "mlx5_1": ("DOWN", "10 Gb/sec (4X SDR)")}
    trees = [tree(tmp_path / str(i), **usual) for i in range(3)]
    trees.append(tree(tmp_path / "3", mlx5_0=("ACTIVE", "100 Gb/sec (4X EDR)"), mlx5_1=usual["mlx5_1"]))
    launch = Launch(launcher="torchrun", nodes=4, address="h0", port=1, backend="static")
    came = [
        Arrival(
            look=HostReport(host=f"h{i}", launch=launch, fabric=ports, gloo=Choice(address=f"10.0.0.{i}")),
            node=i,
            address="",
        )
        for i, ports in enumerate(trees)
    ]
    report = judge_report.together(came, (), 1)
    assert [(f.id, f.hosts) for f in report.findings if f.area == "devices"] == [("DR605", ("h3",))]


def test_rates_and_torch_are_measured_in_children(tmp_path):
    """`--heavy` and `--torch` on this very host: figures, what was imported; our own process imports no torch."""
    pytest.importorskip("torch")
    script = textwrap.dedent(
        f"""
        import sys
        from dtdebug.doctor.host import torch_import as imports, throughput as rates
        found, why = rates.rates({str(tmp_path)!r})
        assert not why and found["memory_rate"] > 0, why
        problems, versions = imports.torch([sys.executable, "t.py"], {{"PATH": ""}})
        assert not problems, problems
        assert versions["torch (imported)"]
        problems, _ = imports.torch(["/bin/false"], {{"PYTHONPATH": {str(tmp_path)!r}}})
        assert problems[0].id == "DR408" and "broken" in problems[0].text, problems
        assert "torch" not in sys.modules
        """
    )
    (tmp_path / "torch.py").write_text("raise ImportError('broken library')\n")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=170, check=False)
    assert done.returncode == 0, done.stderr
    assert {path.name for path in tmp_path.iterdir()} <= {"torch.py", "__pycache__"}
