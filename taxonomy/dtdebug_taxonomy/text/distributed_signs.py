"""Recognises whether the words of the user and of the output concern several processes, hosts or devices."""

from __future__ import annotations

from collections import Counter

from dtdebug_taxonomy.model.launch_variables import WORLD_SIZE
from dtdebug_taxonomy.model.snapshot import Snapshot, walk
from dtdebug_taxonomy.text.lazy_re import lazy_re
from dtdebug_taxonomy.text.pattern_matcher import clip_lines
from dtdebug_taxonomy.text.phrase_table import in_english

_SIGNS = lazy_re(
    r"""(?ix)
      (?-i:['"](?:LOCAL_|WORLD_)?(?:RANK|SIZE)['"])
    | torchrun | torch\.distributed | torch[ _-]?elastic | \[\d,\d{1,5}\]<std | \bstage[ _-]?3 | \bds_
    | (?<!\bbe\ )\bbroadcast | \bmore\ than\ one\b
    | \b(?:on|with)\ (?:two|three|four|eight|several|many|\d{1,3})\b(?=[,.;]|$)
    | \b(?:two|three|four|eight|several|both|all)\ of\ them | \bin\ the\ cluster\b
    | \b(?:main|head|worker|master|compute|far)[ -](?:node|machine|host|side)\b | \bremote\ (?:node|machine|side)\b
    | \bthe\ others\ (?:wait|hang|stay)
    | \bexecutors\b | \b(?:pp|tp|vp|dp|ep|cp)\ ?[=>]\ ?\d
    | \bdistributed(?!\ (?:under|in\ the\ hope|debugger)) | \bddp | \bfsdp
    | nccl | rccl | hccl | oneccl | \bgloo | \bmpi(?:\b|run|exec|4py|ch|_) | open-?mpi | horovod | \bhvd\b
    | deep-?\ ?speed | \bzero-?[123]\b | \bzero[ -]stage | megatron | colossal | \baccelerate\ (?:launch|config)
    | \baccelerator(?:\.|\() | world[_ ]?size | (?:local|node|global|my)[_ ]rank | master_(?:addr|port)
    | \[(?:rank|default)\d | (?<!of\ )(?<!expected\ )(?<!equal\ )(?<!be\ )(?<!has\ )\brank[ :=#-]?\d(?!\ tensor)
    | \b(?:each|every|one|other|all|per|which|this|same|both)\ ranks?\b | \branks\b | \brank\ (?:zero|one|two)
    | (?<![a-z])nproc
    | num_processes | data-?\ ?parallel | mirrored | parameter[- _]?servers? | TF_CONFIG | tf\.distribute
    | multi[-_ ]?(?:gpu|node|worker|process|host|machine)s? | all[-_]?(?:reduce|gather|to[-_]all) | reduce[-_]?scatter
    | \bray(?:\.|\b) | slurm | \bsrun | \bsbatch | rendezvous | c10d | process[ _-]group
    | elastic\ (?:training|agent|launch)
    | \bpods?\b | (?:tensor|pipeline|expert|context|sequence|model)[-_ ]parallel | dtensor | nvlink
    | device_?mesh | \bmesh[_ ]?(?:shape|dim) | \b(?:tp|pp|dp|cp|ep|etp|vpp)_(?:size|group|rank|mesh|degree)\b
    | FullySharded | \bcontext_parallel | \b(?:hccl|nccl)_ | _parallel_size\b | \bworker_group
    | \bnumber\ of\ (?:gpus|devices|nodes|processes|hosts|replicas|ranks)\b
    | infiniband | \brdma | \bcollectives?\b | \bcross-?replica | \breplica | \bxla\b | \btpu\b | jax\.distributed
    | distributedsampler | \bshard(?:ed|ing)\b | torch\.multiprocessing | mp\.spawn | notebook_launcher | estimator
    | _VISIBLE_DEVICES=["']?\d{1,2},\d
    | (?<!used\ by\ )\b(?!1\b)(?!0\b)
      (?:\d{1,5}|two|three|four|eight|several|multiple|many|all|both|other|second|different|more)
      (?:\ ?x)?(?:,?[ -](?:(?![gmt]i?b\b)\w{1,12}\ )?)?
      (?:gpu|node|machine|host|card|process(?:e|\b)|server|computer|device)s?
    | \b(?:[2-9]|\d\d\d?|two|three|four|eight|sixteen|several|multiple)\ ?[x*]?\ ?(?:nvidia\ |amd\ )?
      (?:[abhv]\d\d0|a[3-6]000|gb?[2-3]00|mi\d{3}|l40s?|rtx|\d0[5-9]0|tesla|titan)s?\b
    | \b(?:per|each|every)[ -](?:gpu|device|card|node|host|machine)\b | \bpipeline\ stages? | \bdistribution\ strateg
    | \b(?:cuda:|gpu[:\#-]?\ ?)[1-9]\b
    | \bworkers\ (?:failed|did\ not|never)\ (?:to\ )?(?:start|join|connect)
    | \(\d{1,6}/\d{1,6}\ (?:workers?\ |replicas\ )?(?:ready|joined|connected|alive)\)
    | \bcommunicators?\b | \bgpu\ process
    | \bshard[ _](?:options|count|assignment|index|size)\b | \bnumber\ of\ shards\b
    | \bpid=\d{1,9},\ ip=[\w.:-]{1,80}\)
    | \bgpus\b(?!\ with\ compute) | \b(?:nodes|machines|hosts|cards)\b | byteps | fairscale | fairseq
    | peer[- ]to[- ]peer | \bp2p\b
    | \bucx\b | \blibfabric\b | \bnet/ofi\b | \bnixl | \bmscclpp | \bnvshmem | \bdeep_ep\b | \bprocess_index\b
    | \bvllmworker | \bworkerproc\b | \bworker_tp\d
    | verl\b | openrlhf | torchtitan | \bwatchdog
    """
)
_STANDS = lazy_re(r"(?i)\bhang|\bhung\b|\bstuck|\bdeadlock|\bfreez|\bfroze")
_RUNS = lazy_re(
    r"(?i)\b(?:train|epoch|steps?\b|iteration|batch|loss\b|model|gpu|cuda|torch|jax\b|tensorflow|keras|jobs?\b|script|program"
    r"|process|worker|nodes?\b|launch|init|barrier|saving|checkpoint|nvidia|watchdog)"
    r"|^\W{0,3}(?:hang|stuck|freez)"
    r"|\b(?:it|this|everything|that|nothing)\b (?:\w{1,10} ){0,3}(?:hang|hung|stuck|freez|froze)"
)
"""Words of things that hang for others: a training or its job; for a named tool that is unknown."""
_PACKAGES = lazy_re(
    r"torch[/\\](?:distributed|nn[/\\]parallel|multiprocessing[/\\]spawn)|torch[/\\]csrc[/\\]distributed"
    r"|(?:-packages[/\\]|Megatron-LM[/\\]|(?<![\w/\\]))(?:deepspeed|horovod|colossalai|megatron|apex|fairscale|byteps"
    r"|torchtitan|torchft|verl|openrlhf|nemo_rl|nanotron|deep_ep|hivemind|mscclpp|slime|monarch|mpi4py|varuna|tutel|fmoe|bagua|megablocks|realhf|nvshmem|nemo_run|torchx|submitit|nvidia_resiliency_ext|ray_lightning|ray[/\\]train|torch_xla[/\\]distributed"
    r"|lightning[/\\](?:fabric|pytorch)[/\\]strategies|accelerate[/\\]utils[/\\](?:fsdp|deepspeed|megatron)|(?:vllm|sglang[/\\]srt)[/\\]distributed)\w{0,12}[/\\.]"
    r"|vllm[/\\](?:v1[/\\])?executor[/\\]multiproc"
    r"|tensorflow[/\\]python[/\\]distribute|accelerate[/\\]commands[/\\]launch"
)
"""Installed libraries whose frames are a sign."""
_PATH = lazy_re(
    r"File \"[^\"\n]{1,300}\", line \d{1,9}(?:, in .{1,200})?|\", line \d{1,9}, in .{1,200}"
    r"|(?:~|\.{1,2})?[\w.@+-]{0,100}/[^\s\"',:;)]{0,300}"
)
_GRAPH = lazy_re(r"(?i)\b(?:dgl|pyg|torch_geometric|networkx|homogeneous graph|[en]types?|edges?|DAG|onnx)\b")
_NODES = lazy_re(r"(?i)\bnodes?\b")
"""The nodes of a graph are not machines."""
_RANKED = lazy_re(r"(?i)\b(?:ranking|candidates?|MRR|NDCG)(?:\b|[_.])")
_RANKS = lazy_re(r"(?i)\branks\b")
"""The ranks of candidates are not processes."""
_DEVICE = r"\w{1,12}(?::\d{1,3})?"
_BESIDE_CPU = lazy_re(
    rf"at least two devices, (?:(?:cpu|meta)(?:,? and |, ){_DEVICE}|{_DEVICE}(?:,? and |, )(?:cpu|meta)\b)"
)
"""A tensor left on the CPU needs only one device."""
_HOLDS = r"Process \d{1,9} has"
_ALIKE = lazy_re(
    rf"{_HOLDS} ([\d.]{{1,9}} [KMG]iB) memory in use\. "
    rf"(?:{_HOLDS} [\d.]{{1,9}} [KMG]iB memory in use\. ){{0,15}}{_HOLDS} \1 "
)
"""Other processes that hold exactly equal amounts of a device: the contexts of other ranks, not unrelated processes."""
_SIZE = (
    r"(?i)\b(?:world_?size|(?:tensor|pipeline|data)_parallel_size|num_processes|nproc[_-]per[_-]node)['\"]?[=: ]{1,2}"
)
_ONE, _MORE = lazy_re(rf"{_SIZE}1\b"), lazy_re(rf"{_SIZE}(?:[2-9]|\d\d)")
"""A server on one device also prints words of distribution."""


_NO_DIGITS = dict.fromkeys(map(ord, "0123456789"))
_LONG, _EACH = 64 << 10, 64
"""Text size from which lines that differ only in digits are thinned, and how many of each are kept."""


def _thin_out(text: str) -> str:
    if len(text) < _LONG:
        return text
    seen: Counter[str] = Counter()
    found = []
    for line in text.split("\n"):
        shape = line.translate(_NO_DIGITS)
        seen[shape] += 1
        if seen[shape] <= _EACH:
            found.append(line)
    return "\n".join(found)


def speaks_of_several(snapshot: Snapshot) -> bool:
    """True if anything indicates several processes, hosts or devices."""
    raised = [*walk(snapshot.exception)]
    if any(i.rank is not None or i.exit_code is not None or i.signal for i in raised):
        return True
    frames = "\n".join(f.file for info in raised for f in info.frames)
    said = [f"{info.type}: {info.message[:8_000]}" for info in raised]
    situation = f"{snapshot.situation}\n{in_english(snapshot.situation)}"
    texts = [_thin_out(clip_lines(text)) for text in (situation, snapshot.output, snapshot.cell, *said)]
    if _PACKAGES.search(frames) or any(_PACKAGES.search(text) for text in texts):
        return True
    if any(_ALIKE.search(text) for text in texts):
        return True
    if any(_ONE.search(text) for text in texts) and not any(_MORE.search(text) for text in texts):
        return bool(_SIGNS.search(situation))
    stands = any(map(_STANDS.search, texts)) and any(map(_RUNS.search, texts))
    return stands or any(_SIGNS.search(_without_places(text)) for text in texts)


def _without_places(text: str) -> str:
    """Remove paths, and words that have a different meaning here."""
    text = _BESIDE_CPU.sub(" ", text)
    text = _NODES.sub(" ", text) if _GRAPH.search(text) else text
    text = _RANKS.sub(" ", text) if _RANKED.search(text) else text
    return _PATH.sub(" ", text)


def is_distributed(snapshot: Snapshot) -> bool:
    """True if the failed program is one of several processes, or drives several devices."""
    if snapshot.child_ranks or any(r.initialized for r in snapshot.ranks):
        return True
    if any(snapshot.environment.get(name, "1") != "1" for name in (*WORLD_SIZE, "TF_CONFIG")):
        return True
    return any(
        part in frame.file.replace("\\", "/")
        for info in walk(snapshot.exception)
        for frame in info.frames
        for part in (
            "/torch/distributed/",
            "/torch/nn/parallel/",
            "/deepspeed/",
            "/horovod/",
            "/colossalai/",
            "/tensorflow/python/distribute/",
        )
    )
