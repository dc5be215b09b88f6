"""Parameter offload, which only ZeRO stage 3 supports."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.source.config.document import Config
from dtdebug_taxonomy.source.config.tree import Node, number
from dtdebug_taxonomy.source.deepspeed import configurations
from dtdebug_taxonomy.source.shell.launch import launches
from dtdebug_taxonomy.source.shell.script import script_of
from dtdebug_taxonomy.source.source import Source
from dtdebug_taxonomy.source.text import Span

_DEVICES = {"cpu", "nvme"}
_NAMED = re.compile(r"(?i)(zero|stage)[-_]?[12][^/]*$")
"""Files named by their stage, which is probably intended."""


def check(source: Source) -> Iterator[Hit]:
    """Check DeepSpeed's own configuration, Accelerate's file and its options."""
    for root in configurations(source):
        device, stage = root.get("zero_optimization.offload_param.device"), root.get("zero_optimization.stage")
        entry = root.entry("zero_optimization.offload_param")
        if entry is not None and device is not None and device.value in _DEVICES:
            yield from _hit(source, entry.key_span, stage)
    if isinstance(source, Config) and "zero_stage" in source.text:
        for root in source.roots:
            device, stage = root.get("deepspeed_config.offload_param_device"), root.get("deepspeed_config.zero_stage")
            entry = root.entry("deepspeed_config.offload_param_device")
            if entry is not None and stage is not None and device is not None and device.value in _DEVICES:
                yield from _hit(source, entry.key_span, stage)
    script = script_of(source)
    for launch in launches(script) if script and "--offload_param_device" in source.text else ():
        given = launch.options.get("--offload_param_device")
        asked = launch.number(script, "--zero_stage") if script else None
        if given and given.value and given.value.text in _DEVICES and asked is not None and asked < 3:
            yield Hit(given.word.span, _message(asked))


def _hit(source: Source, span: Span, stage: Node | None) -> Iterator[Hit]:
    known = 0 if stage is None else number(stage)
    if known is not None and known < 3:
        fix = (
            Fix("Use stage 3", (Edit(stage.span, "3"),))
            if stage is not None and not _NAMED.search(source.path)
            else None
        )
        yield Hit(span, _message(int(known)), fix)


def _message(stage: int) -> str:
    return (
        f"Only ZeRO stage 3 partitions parameters: with stage {stage} they are not offloaded and stay in device memory."
    )
