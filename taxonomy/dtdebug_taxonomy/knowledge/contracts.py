"""Contracts: what an API demands of its arguments, one file for each family of APIs in `contracts/`."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import msgspec

from dtdebug_taxonomy.knowledge.cache import load_cached
from dtdebug_taxonomy.knowledge.loader import KnowledgeError, read_record
from dtdebug_taxonomy.knowledge.schema import KnowledgeRecord, Reference

_OTHERS = frozenset({
    "nn", "ops", "functional", "_functional_collectives", "_symmetric_memory", "autograd", "rpc", "linalg", "jit",
    "testing",
})  # fmt: skip
"""Modules whose functions are not those of the module around them."""
_PACKAGES = {"pytorch_lightning": "lightning"}
"""Packages under another name."""
CONTRACTS = Path(__file__).parents[1] / "contracts"


class Repair(KnowledgeRecord, frozen=True, kw_only=True):
    """One way to write an argument of the call, so that the demand is met."""

    at: str
    """Parameter whose expression is replaced, or added by its name if the call has none."""
    write: str = ""
    """Expression with slots, `{module}` and `{dist}` (the user's name of torch.distributed); empty: the argument is
    left out of the call."""
    of: str = ""
    """Parameter whose object was made by the call that is edited; empty: the failed call itself."""
    when: str = ""
    """Condition under which it helps; empty: always. If it is unknown, the edit is not made."""
    alike: str = ""
    """Parameter that has to be equal on all ranks that failed on this line; empty: none."""


class Contract(KnowledgeRecord, frozen=True, kw_only=True):
    """One demand of one or several APIs, in the language of `text.demands`."""

    id: str
    api: tuple[str, ...]
    """Qualified names, also those of the class and method that the same call may be known by."""
    parameters: tuple[str, ...] = ()
    """Parameters in order, as far as positional arguments of the user's line need them."""
    about: str
    """Parameter to which the way back is told."""
    when: str = ""
    """Condition under which it is demanded; empty: always. If it is unknown, nothing is said."""
    demand: str = ""
    """Condition that has to be true: a comparison whose left side is what the user can change."""
    alike: tuple[str, ...] = ()
    """Instead of `demand`: what has to be equal on all ranks."""
    says: str
    """The demand and the given values, in a sentence without its end. Slots: `{api}`; a parameter (the user's
    expression); anything else of the language (its value)."""
    fix: str
    """Advice in the imperative, with the same slots."""
    write: str = ""
    """Expression that fits wherever the call stands, with the slot `{module}` for the user's name of the library's
    module."""
    instead: str = ""
    """Expression that fits where `about` stands in the line of the call, with slots: `{target!}.long()`."""
    repair: tuple[Repair, ...] = ()
    """Further ways, of which the first that helps is shown."""
    here: bool = False
    """True if the call itself is wrong, wherever its values come from."""
    makes: bool = False
    """True if the call makes an object: a call of that object is another, with arguments of its own."""
    asks: str = ""
    """The demand in a sentence without values and without its end; empty: the beginning of `says`."""
    check: str = ""
    """Id of the check that finds the same in a source, also where the values are not known."""
    reference: tuple[Reference, ...] = ()
    """Set by the loader, if the contract has none of its own: that of its file."""


class _ContractFile(KnowledgeRecord, frozen=True, kw_only=True):
    """`contracts/NAME.toml`."""

    family: str
    reference: tuple[Reference, ...]
    contract: tuple[Contract, ...]


class Contracts:
    """All contracts, found by the name of an API."""

    def __init__(self, contracts: tuple[Contract, ...]) -> None:
        self.all = contracts
        self._by_name: dict[tuple[str, str], list[Contract]] = {}
        self._called = lru_cache(maxsize=4096)(self._find_called)
        for contract in contracts:
            for key in dict.fromkeys(contract_key(name) for name in contract.api):
                self._by_name.setdefault(key, []).append(contract)

    def of(self, api: str) -> tuple[Contract, ...]:
        """Return the contracts of an API; modules in between are ignored, for libraries re-export their names."""
        return tuple(self._by_name.get(contract_key(api), ()))

    def called(self, api: str) -> tuple[Contract, ...]:
        """Return the contracts of a name as a program writes it: functions of one name in other modules are others."""
        return self._called(api)

    def _find_called(self, api: str) -> tuple[Contract, ...]:
        return tuple(c for c in self.of(api) if any(_is_same(api, name) for name in c.api))


def _is_same(api: str, name: str) -> bool:
    """True if two names of one key mean the same function: modules that only re-export lie between them."""
    if contract_key(api) != contract_key(name):
        return False
    named = contract_key(api)[1]
    between = {*api.split(".")} ^ {*name.split(".")}
    return named[:1].isupper() or not between & _OTHERS


def contract_key(api: str) -> tuple[str, str]:
    """Return (top package, name), where the name of a method is that with its class."""
    parts = api.split(".")
    parts[0] = _PACKAGES.get(parts[0], parts[0])
    named = parts[-2:] if len(parts) > 2 and parts[-2][:1].isupper() else parts[-1:]
    if named[-1] in {"__init__", "__call__", "__new__"}:
        named = named[:-1]
    return parts[0], ".".join(named)


@lru_cache(maxsize=2)
def load_contracts(home: Path = CONTRACTS) -> Contracts:
    """Return all contracts.

    Raises:
        KnowledgeError: a file is broken; the text names file, place and what was expected.

    """
    made = load_cached("contracts", tuple[Contract, ...], lambda: _read(home)) if home == CONTRACTS else _read(home)
    return Contracts(made)


def _read(home: Path) -> tuple[Contract, ...]:
    found: dict[str, Contract] = {}
    for path in sorted(home.glob("*.toml")):
        file = read_record(path, _ContractFile)
        for contract in file.contract:
            if contract.id in found:
                raise KnowledgeError(f"{path}: a second contract {contract.id!r}; ids are unique")
            if bool(contract.demand) == bool(contract.alike):
                raise KnowledgeError(f"{path}: {contract.id}: either `demand` or `alike`")
            found[contract.id] = msgspec.structs.replace(contract, reference=contract.reference or file.reference)
    return tuple(found.values())
