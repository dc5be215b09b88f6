"""Starts doctor on the hosts of a list from one place.

The token goes to each host's standard input, never into a command line, where others could read it.
"""

from __future__ import annotations

import os
import re
import secrets
import shlex
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from dtdebug.doctor.judge.findings import finding, fold_names
from dtdebug.doctor.launch import hostfile
from dtdebug.doctor.report_types import HostFinding, HostRow, Report, UnexaminedArea
from dtdebug.errors import UsageError
from dtdebug.live.probe import remote_commands
from dtdebug.privacy.sanitize import one_line

_MORE = 45.0
"""Seconds on top of `wait`: for login and probes."""
_LIMIT = 16 << 20


def over_ray(command: Sequence[str], wait: float) -> Report:
    """Return the merged report of the nodes of a running Ray cluster; raises UsageError."""
    from dtdebug.doctor.meet import ray_start as ray

    found = ray.answers(command, secrets.token_hex(16), wait, wait + _MORE)
    return _merge_reports([name for name, _, _ in found], [_report(out, error) for _, out, error in found], "ray")


def examine(path: Path, via: str, command: Sequence[str], wait: float) -> Report:
    """Start doctor on each host of a file and return the merged report.

    Raises:
        UsageError: the file can't be read, or no host answers.

    """
    if not command:
        raise UsageError(
            "doctor --hosts: name the launch command, as in `doctor --hosts FILE --via ssh -- torchrun ...`"
        )
    names = [name for name, _ in hostfile.read_hostfile(path)]
    token, jobs = secrets.token_hex(16), []
    for node, name in enumerate(names):
        jobs.append(_begin(via, name, ["--wait", f"{wait:g}", "--node", str(node), "--", *command], token))
    deadline = time.monotonic() + wait + _MORE
    return _merge_reports(names, [_end(job, deadline) for job in jobs], via)


def _merge_reports(names: Sequence[str], answers: Sequence[Report | str], via: str) -> Report:
    """Merge the hosts' reports into the most complete one; raises UsageError if no host answered."""
    reports = [(name, a) for name, a in zip(names, answers, strict=True) if isinstance(a, Report)]
    silent = [(name, a) for name, a in zip(names, answers, strict=True) if isinstance(a, str)]
    if not reports:
        raise UsageError(f"doctor: no host answers; {silent[0][0]}: {silent[0][1]}")
    main = max((a for _, a in reports), key=lambda report: sum(row.came for row in report.hosts))
    seen_there = {(f.id, f.text) for f in main.findings}
    more = [f for _, a in reports if a is not main for f in a.findings if (f.id, f.text) not in seen_there]
    apart = [f for f in more if any(not row.came for _, a in reports if f in a.findings for row in a.hosts[:1])]
    hosts, findings = _add_missing_hosts(main, names, silent)
    known, why = dict(main.observations), dict(main.grounds)
    if via == "ssh":
        refused = next((f"{name}: {words}" for name, words in silent if "ermission denied" in words), "")
        if refused or not silent:
            known["remote_shell_works"] = "no" if refused else "yes"
            why["remote_shell_works"] = refused or f"ssh started dtdebug on {len(names)} hosts without a question"
    return msgspec.structs.replace(
        main,
        observations=known,
        grounds=why,
        hosts=tuple(hosts),
        findings=tuple({(f.id, f.text): f for f in (*findings, *apart)}.values())[:20],
        not_examined=(*main.not_examined, *(UnexaminedArea(id=f"host {n}", why=why) for n, why in silent)),
    )


def _add_missing_hosts(
    main: Report, names: Sequence[str], silent: Sequence[tuple[str, str]]
) -> tuple[list[HostRow], list[HostFinding]]:
    """Return hosts and findings of a report, completed by the names and errors of hosts where doctor did not start."""
    called = {f"node {i}": name for i, name in enumerate(names)}
    hosts = [msgspec.structs.replace(r, host=called.get(r.host, r.host)) for r in main.hosts]
    here = {r.host.partition(".")[0] for r in hosts if r.came}
    why = {name: words for name, words in silent if name.partition(".")[0] not in here}
    known = [r for r in hosts if r.host != "?"]
    if len(hosts) - len(known) == len(why):  # no report knows the numbers of the missing hosts
        hosts = known + [HostRow(host=n, node=names.index(n), came=False) for n in why]
    gone = [r for r in hosts if not r.came]
    if len(hosts) < len(names):  # the job does not need the other listed hosts
        hosts += [HostRow(host=n, came=False) for n in why if n not in {r.host for r in gone}]
    missed = {r.host for r in gone} & set(why)
    findings = [f if f.id != "DR201" else _by_name(f, called) for f in main.findings]
    findings = [f for f in findings if f.id != "DR201" or len(missed) < len(gone)]
    for reason in dict.fromkeys(why[n] for n in why if n in missed):
        mine = [n for n in why if n in missed and why[n] == reason]
        findings.append(
            finding(
                "DR201",
                f"{fold_names(mine)} did not report: {reason}",
                hosts=mine,
                measured=reason,
                expected="an answer of dtdebug doctor",
                fix="Install dtdebug there, where a shell without login finds it" if "not found" in reason else "",
            )
        )
    return hosts, findings


def _by_name(f: HostFinding, called: Mapping[str, str]) -> HostFinding:
    text = re.sub(r"\bnode \d{1,5}\b", lambda m: called.get(m[0], m[0]), f.text)
    return msgspec.structs.replace(f, text=text, hosts=tuple(called.get(h, h) for h in f.hosts))


def _begin(via: str, name: str, asked: Sequence[str], token: str) -> subprocess.Popen[bytes] | str:
    words = ["dtdebug", "doctor", "--format", "json", "--token-stdin", *asked]
    try:
        if via == "ssh":
            built = list(
                remote_commands.over_ssh(
                    name, ["sh", "-c", f'cd {shlex.quote(str(Path.cwd()))} 2>/dev/null; exec "$@"', "sh", *words]
                ).words
            )
        elif via == "srun":
            built = list(remote_commands.over_srun(os.environ.get("SLURM_JOB_ID", ""), name, words).words)
        else:
            built = list(remote_commands.over_kubectl(name, words).words)
            built.insert(2, "--stdin")
    except ValueError as error:
        return str(error)
    try:
        job = subprocess.Popen(
            built, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
    except OSError as error:
        return f"{built[0]}: {error.strerror}"
    with suppress(OSError):
        if job.stdin is not None:
            job.stdin.write(f"{token}\n".encode())
            job.stdin.close()
    job.stdin = None
    return job


def _end(job: subprocess.Popen[bytes] | str, deadline: float) -> Report | str:
    """Return the report, or the reason why there is none."""
    if isinstance(job, str):
        return job
    try:
        out, error = job.communicate(timeout=max(0.1, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(job.pid, signal.SIGKILL)
        job.communicate()
        return "no answer in time"
    said = one_line(error.decode(errors="replace").strip().rpartition("\n")[2], 200)
    return _report(out, said or f"ended with {job.returncode} and said nothing")


def _report(out: bytes, error: str) -> Report | str:
    for line in out[:_LIMIT].splitlines():
        if line.startswith(b"{"):  # a login shell may print before it
            with suppress(msgspec.MsgspecError):
                return msgspec.json.decode(line, type=Report)
    return error or "said nothing"
