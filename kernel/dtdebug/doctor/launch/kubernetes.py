"""Reads Kubernetes jobs: a manifest's pods, their commands, and the variables that the operator sets.

Only the manifest is read; no cluster is contacted. Variables of the operators:
https://github.com/kubeflow/training-operator/blob/1417bbc35b6e7840b3ecab1cec17dbf553ad9e85/pkg/controller.v1/pytorch/envvar.go
https://kubeflow.org/docs/components/trainer/user-guides/pytorch
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, NamedTuple

import msgspec

from dtdebug.doctor.launch.read_launch import read_launch
from dtdebug.doctor.types import Launch
from dtdebug.errors import UsageError
from dtdebug.storage import safe_open

_SIZE, _DOCUMENTS, _DEEPEST, _MOST = 1 << 20, 50, 12, 4096
_ALIASES = 20
"""Maximum number of YAML aliases; nested aliases can expand to billions of nodes."""
_COUNTS = ("replicas", "parallelism", "completions")
_DEVICES = re.compile(r"(?:[a-z0-9.-]+/)(?:gpu|neuron|npu|hpu|mig-.{1,40})\Z")
_GIVEN = re.compile(r"\$\(([A-Za-z_]\w{0,100})\)")
_NUMBERED = re.compile(r"--node[_-]rank[ =]\"?\d")
_PORT_OF_OPERATOR = 23456
"""Operator's default port of the master and of an elastic rendezvous."""


class Pods(NamedTuple):
    """Pods of one role."""

    role: str
    number: int | None
    """Number of pods; None if it is a placeholder."""
    launch: Launch
    """Launch of the first pod."""
    devices: int | None
    """Devices per pod; None if the manifest requests none."""
    known: bool
    """The manifest, not the image, names the command."""
    numbered: bool
    """The command hard-codes one --node-rank for all pods."""
    plain: bool
    """The command is `python PROGRAM`, without a launcher."""


class Manifest(NamedTuple):
    """First job in a manifest that starts ranks."""

    path: Path
    kind: str
    name: str
    pods: tuple[Pods, ...]
    elastic: bool
    slots: int
    """Slots per worker of an MPIJob."""

    @property
    def number(self) -> int | None:
        """Total number of pods, or None if unknown."""
        numbers = [pods.number for pods in self.pods]
        return None if None in numbers else sum(n for n in numbers if n is not None)


Row = tuple[str, int | None, dict[str, Any]]
"""(role, number, pod) of a pod template."""


def manifest(command: Sequence[str]) -> Manifest | None:
    """Return the job of `kubectl apply -f FILE` or of FILE alone, or None for any other command.

    Raises:
        UsageError: the file can't be read, or has no job.

    """
    path = _path(command)
    if path is None:
        return None
    import yaml

    try:
        text = safe_open.read_text(path, _SIZE)
        if sum(isinstance(e, yaml.AliasEvent) for e in yaml.parse(text, Loader=yaml.SafeLoader)) > _ALIASES:
            raise UsageError(f"{path}: refers to its own parts more than {_ALIASES} times")
        documents = list(yaml.safe_load_all(text))[:_DOCUMENTS]
    except OSError as error:
        raise UsageError(f"{path}: can't be read: {error.strerror}") from None
    except yaml.YAMLError as error:
        if "{{" in text:
            raise UsageError(f"{path}: is a template: give doctor what it becomes, as by `helm template`") from None
        mark = getattr(error, "problem_mark", None)
        raise UsageError(f"{path}:{mark.line + 1 if mark else 1}: is not valid YAML") from None
    jobs = [job for document in documents for each in _objects(document) if (job := _job(path, each)) is not None]
    best = max(jobs, key=lambda job: max(_surely(p) for p in job.pods), default=None)
    if best is None:
        raise UsageError(f"{path}: describes no pods; doctor reads PyTorchJob, TrainJob, MPIJob, Job, JobSet, Pod, ...")
    return best


def _path(command: Sequence[str]) -> Path | None:
    names = [PurePath(word).name for word in command[:3]]
    if names[:1] == ["kubectl"] and names[1:2] in (["apply"], ["create"], ["replace"]):
        for index, word in enumerate(command):
            if word in ("-f", "--filename") and index + 1 < len(command):
                return Path(command[index + 1])
            if word.startswith(("-f=", "--filename=")):
                return Path(word.partition("=")[2])
    return Path(command[0]) if len(command) == 1 and command[0].endswith((".yaml", ".yml")) else None


def _objects(document: Any, depth: int = 0) -> Iterator[Any]:
    """Yield the innermost objects with a spec, for example inside an AppWrapper, a List or a workflow."""
    inner = [each for value in _values(document) for each in _objects(value, depth + 1)] if depth < _DEEPEST else []
    if inner:
        yield from inner
    elif (
        isinstance(document, dict) and isinstance(document.get("kind"), str) and isinstance(document.get("spec"), dict)
    ):
        yield document


def _values(node: Any) -> Iterator[Any]:
    if isinstance(node, dict):
        yield from node.values()
    elif isinstance(node, list):
        yield from node[:_MOST]


def _job(path: Path, document: Any) -> Manifest | None:
    if not isinstance(document, dict) or not isinstance(document.get("spec"), dict):
        return None
    kind, spec = str(document.get("kind", "")), document["spec"]
    if kind == "TrainJob":
        spec = _as_template(spec)
    said = document.get("metadata")
    name = str(said.get("name") or said.get("generateName") or "job") if isinstance(said, dict) else "job"
    rows = list(_templates({"": document} if kind == "Pod" else spec, 1, "", 0))
    if not rows:
        return None
    rows.sort(key=lambda row: row[0] not in ("Master", "Launcher"))
    variables = _operator_variables(kind, name, spec, rows)
    pods = [_pods(role, count, template, variables) for role, count, template in rows]
    if kind == "MPIJob" and len(pods) > 1:
        pods = [_of_mpi(pods[0], pods[1], spec)]
    starts = [p for p in pods if _surely(p) > 0] or pods
    return Manifest(path, kind, name, tuple(starts), isinstance(spec.get("elasticPolicy"), dict), _slots(spec))


def _of_mpi(launcher: Pods, workers: Pods, spec: dict[str, Any]) -> Pods:
    """Return the workers, with the ranks that the launcher's mpirun starts on them by the operator's hostfile."""
    of = launcher.launch
    hosts = workers.number or 1
    each = of.per_node if hosts == 1 or of.world is None else -(-of.world // hosts)
    launch = msgspec.structs.replace(of, nodes=hosts, least=hosts, per_node=each or _slots(spec), starts="mpirun")
    return workers._replace(launch=launch, known=launcher.known)


def _slots(spec: dict[str, Any]) -> int:
    said = spec.get("slotsPerWorker", 1)
    return said if isinstance(said, int) else 0


def _as_template(spec: dict[str, Any]) -> dict[str, Any]:
    """Convert a TrainJob's trainer to the pod template form of other jobs."""
    trainer = spec.get("trainer")
    if not isinstance(trainer, dict):
        return spec
    container = {k: trainer[k] for k in ("command", "args", "env") if k in trainer}
    container["resources"] = trainer.get("resourcesPerNode") or {}
    template = {"spec": {"containers": [container]}}
    return {**spec, "trainer": {**trainer, "replicas": trainer.get("numNodes", 1), "template": template}}


def _templates(node: Any, count: int | None, role: str, depth: int) -> Iterator[Row]:
    """Yield (role, number, pod) for all pod templates at any depth: each kind of job nests them differently."""
    if depth > _DEEPEST:
        return
    if isinstance(node, list):
        for each in node[:_DOCUMENTS]:
            yield from _templates(each, count, role, depth + 1)
    if not isinstance(node, dict):
        return
    own = next((node[name] for name in _COUNTS if name in node), 1)
    count = max(0, min(count * own, _MOST)) if isinstance(own, int) and count is not None else None
    role = str(node["name"]) if isinstance(node.get("name"), str) else role
    for key, value in node.items():
        inside = value.get("spec") if isinstance(value, dict) else None
        if isinstance(inside, dict) and isinstance(inside.get("containers"), list):
            if count != 0:
                yield role, count, inside
        elif isinstance(value, dict | list):
            yield from _templates(value, count, role if key in ("spec", "template") else str(key), depth + 1)


def _operator_variables(kind: str, name: str, spec: dict[str, Any], rows: Sequence[Row]) -> dict[str, str]:
    """Return the variables that the operator or Kubernetes sets in the first pod."""
    numbers = [count for _, count, _ in rows]
    nodes = None if None in numbers else sum(count for count in numbers if count is not None)
    if kind == "PyTorchJob":
        return _pytorch_variables(name, spec, rows, nodes)
    if kind == "TrainJob":
        each = spec.get("trainer", {}).get("numProcPerNode")
        told = {"PET_NODE_RANK": "0", "PET_MASTER_ADDR": f"{name}-node-0-0.{name}"} | _many("PET_NNODES", nodes)
        return told | ({"PET_NPROC_PER_NODE": str(each)} if each is not None else {})
    first = f"{name}-0"
    return {"HOSTNAME": first, "POD_NAME": first} | ({"JOB_COMPLETION_INDEX": "0"} if "Indexed" in str(spec) else {})


def _pytorch_variables(name: str, spec: dict[str, Any], rows: Sequence[Row], nodes: int | None) -> dict[str, str]:
    elastic, each = spec.get("elasticPolicy"), spec.get("nprocPerNode")
    told: dict[str, str] = {}
    if any(role == "Master" for role, _, _ in rows):
        world = nodes * each if isinstance(each, int) and nodes is not None else nodes
        port = next((p for role, _, pod in rows if role == "Master" and (p := _port(pod))), _PORT_OF_OPERATOR)
        told = {"MASTER_ADDR": f"{name}-master-0", "MASTER_PORT": str(port), "RANK": "0", **_many("WORLD_SIZE", world)}
        told |= {"PET_MASTER_ADDR": told["MASTER_ADDR"], "PET_MASTER_PORT": str(port)}
        told |= {"PET_NODE_RANK": "0", **_many("PET_NNODES", nodes)}
    if isinstance(elastic, dict):
        each = elastic.get("nProcPerNode", each)
        host = elastic.get("rdzvHost") or f"{name}-worker-0"
        least, most = elastic.get("minReplicas", nodes), elastic.get("maxReplicas", nodes)
        known = isinstance(least, int) and isinstance(most, int)
        told |= {
            "PET_RDZV_BACKEND": str(elastic.get("rdzvBackend") or "c10d"),
            "PET_RDZV_ENDPOINT": f"{host}:{elastic.get('rdzvPort') or _PORT_OF_OPERATOR}",
            **({"PET_NNODES": f"{least}:{most}"} if known else {}),
        }
    return told | ({"PET_NPROC_PER_NODE": str(each)} if each is not None else {})


def _many(name: str, number: int | None) -> dict[str, str]:
    return {name: str(number)} if number is not None else {}


def _port(pod: dict[str, Any]) -> int | None:
    """Return the port named `pytorchjob-port`, as the operator does, or None."""
    ports = [p for c in _containers(pod) for p in _rows(c.get("ports")) if p.get("name") == "pytorchjob-port"]
    return next((p["containerPort"] for p in ports if isinstance(p.get("containerPort"), int)), None)


def _pods(role: str, count: int | None, pod: dict[str, Any], variables: Mapping[str, str]) -> Pods:
    """Return the pods of a template, judged by the container that most likely starts ranks, else the first."""
    found = [_of_container(role, count, c, variables) for c in _containers(pod)]
    return (
        max(found, key=_surely)
        if found
        else Pods(role, count, Launch(), None, known=False, numbered=False, plain=False)
    )


def _of_container(role: str, count: int | None, container: dict[str, Any], variables: Mapping[str, str]) -> Pods:
    own = {str(e.get("name")): _value(e, variables) for e in _rows(container.get("env"))}
    variables = {**own, **variables}
    words = [str(w) for name in ("command", "args") for w in _words(container.get(name))]
    words = [_GIVEN.sub(lambda m: variables.get(m[1], m[0]), word) for word in words]
    known = bool(container.get("command"))
    try:
        launch = read_launch(words, variables) if words else Launch()
    except UsageError as error:  # the files that it names are in the image
        launch = Launch(problems=(str(error),))
    plain = bool(words) and PurePath(words[0]).name.startswith("python") and launch.launcher in ("", "variables")
    return Pods(role, count, launch, _devices(container), known, bool(_NUMBERED.search(" ".join(words))), plain)


def _value(entry: dict[str, Any], variables: Mapping[str, str]) -> str:
    """Return a variable's value in the first pod, or "" if only Kubernetes knows it."""
    if entry.get("value") is not None:
        return str(entry["value"])
    said = str(entry.get("valueFrom"))
    return "0" if "-index" in said else variables.get("HOSTNAME", "") if "metadata.name'" in said else ""


def _surely(pods: Pods) -> int:
    """Return the confidence that pods start ranks: 2 a launcher, 1 a program or an unknown command, 0 otherwise."""
    return 2 if pods.launch.launcher not in ("", "variables") else 1 if pods.launch.program or not pods.known else 0


def _devices(container: dict[str, Any]) -> int | None:
    resources = container.get("resources")
    limits = resources.get("limits") or resources.get("requests") if isinstance(resources, dict) else None
    rows = limits.items() if isinstance(limits, dict) else ()
    counts = [int(str(v)) for k, v in rows if _DEVICES.match(str(k)) and re.fullmatch(r"\d{1,4}", str(v))]
    return sum(counts) if counts else None


def _containers(pod: dict[str, Any]) -> list[dict[str, Any]]:
    return _rows(pod.get("containers"))


def _rows(value: Any) -> list[dict[str, Any]]:
    return [each for each in value[:_DOCUMENTS] if isinstance(each, dict)] if isinstance(value, list) else []


def _words(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value] if isinstance(value, str) else []
