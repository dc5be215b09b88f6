"""Variables for NCCL that NCCL does not read."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.near_names import nearest, related_name
from dtdebug_taxonomy.knowledge import facts
from dtdebug_taxonomy.source.source import Source

_OTHERS = re.compile(
    r"NCCL_(CTRAN|COMM_STATE|GPUDIRECTTCPX|FASTRAK|SHIMNET|SHARP|UCX|IBEXT|PLUGIN|TESTS?|RCCL|HCCL)_|NCCL_(USE_SNAP|USE_MULTISTREAM|DYNAMIC_CHUNK_SIZE)$"
    r"|NCCL_(TUNER_CONFIG_PATH|LL_THRESHOLD|LL128_THRESHOLD|TREE_THRESHOLD|RINGS|SINGLE_RING_THRESHOLD|IB_GDR_LEVEL"
    r"|TRANSPORT_HOST_MEM|INIT_RETRIES|MODULE|HEADERS|HDR_PATH|LINK_PATH|MAJOR|MINOR)$"
    r"|\w+_(HOME|ROOT|DIRS?|PATH|LIB|LIBS|LIBDIR|LIBRAR(Y|IES)|INCLUDES?|INCLUDE_DIRS?|VERSION|VER|REPO|COMMIT|TAG|BRANCH"
    r"|URL|PKG|PACKAGE|SRC|SOURCE|BUILD|INSTALL|TESTS?|ARGS|OPTS|OPTIONS|FLAGS|CMD|LOG|LOGS|OUTPUT|STATIC|SO|HASH|IMAGE"
    r"|ENV|VARS|CONFIG|BACKEND|PATCH)$"
)
"""Names of plugins, of releases older than the table, of builds, and of scripts' own variables."""


def check(source: Source) -> Iterator[Hit]:
    """Report a variable that is set, is not in NCCL's own list, and is not read by the file itself."""
    known = facts.nccl().variables.keys() | facts.nccl_meanings().keys()
    used = {v.name for v in source.variables if not v.is_set}
    for variable in source.variables:
        name = variable.name
        if not name.startswith("NCCL_") or not variable.is_set or name in known or name in used:
            continue
        if name in facts.torch_env().renamed or name in facts.nccl().constants or len(name) < 7:
            continue
        if _OTHERS.match(name):
            continue
        meant = nearest(name, known)
        fix = Fix(f"Write {meant}", (Edit(variable.span, meant),)) if meant else None
        meant = meant or related_name(name, known)
        maybe = f"; maybe {meant} is meant." if meant else "."
        yield Hit(variable.span, f"NCCL reads no variable {name}, so this setting has no effect{maybe}", fix)
