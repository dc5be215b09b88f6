"""Contracts that accounts break: demands of an API that the values do not meet, and those that ranks meet together."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from dtdebug_taxonomy.inference.account_call import calls_object, library_call, read_call
from dtdebug_taxonomy.knowledge.contracts import Contract, load_contracts
from dtdebug_taxonomy.model.account import Account, Refusal
from dtdebug_taxonomy.stacks.frames import short
from dtdebug_taxonomy.text.contract_call import UserCall, short_name
from dtdebug_taxonomy.text.demands import Plain, UnknownTermError, is_met, value_of


class Broken(NamedTuple):
    """A contract that one account breaks."""

    contract: Contract
    account: Account
    call: UserCall


class Parted(NamedTuple):
    """A contract that ranks break together: what has to be equal on all of them is not."""

    contract: Contract
    what: str
    """Attribute that differs: `shape`."""
    rows: tuple[tuple[Account, UserCall, Plain], ...]
    """Each rank's account with its value."""


def broken_contract(account: Account) -> Broken | None:
    """Return the first contract of the account's API that its values break; None if none is known to be broken.

    Where the API itself breaks none, the call within the library that raised is asked: a layer inside a container.
    """
    if account.refusal is None or not account.refusal.api:
        return None
    for api, inner in _apis(account.refusal):
        for contract in load_contracts().of(api):
            if not contract.demand or (contract.makes and calls_object(account)):
                continue
            call = read_call(account, contract.parameters, inner=inner)
            if contract.when and is_met(contract.when, call.scope) is not True:
                continue
            if is_met(contract.demand, call.scope) is False:
                return Broken(contract, account, call._replace(name=short_name(api)))
    return None


def _apis(refusal: Refusal) -> Iterator[tuple[str, bool]]:
    """Yield the API that the user called, the function that raised, and what its line called; whether it is inner."""
    yield refusal.api, False
    place = refusal.place
    package = short(place.file).partition("/")[0] if place is not None else ""
    if place is None or not package.isidentifier():
        return
    if place.function and place.function not in {"forward", "__init__", "__call__"}:  # a method of some subclass
        yield f"{package}.{place.function}", place.function != refusal.api.rpartition(".")[2]
    called = library_call(place)
    if called is not None:
        yield f"{package}.{ast.unparse(called.func).rpartition('.')[2]}", True


def parted_contract(accounts: Sequence[Account]) -> Parted | None:
    """Return the first contract on equal values that the accounts of several ranks break."""
    apis = dict.fromkeys(a.refusal.api for a in accounts if a.refusal is not None and a.refusal.api)
    for api in apis:
        same = [a for a in accounts if a.rank is not None and a.refusal is not None and a.refusal.api == api]
        for contract in load_contracts().of(api):
            for expression in contract.alike if len(same) > 1 else ():
                rows = tuple(_with_values(same, contract, expression))
                if len({value for _, _, value in rows}) > 1:
                    return Parted(contract, expression.rpartition(".")[2], rows)
    return None


def _with_values(
    accounts: Iterable[Account], contract: Contract, expression: str
) -> Iterable[tuple[Account, UserCall, Plain]]:
    for account in accounts:
        call = read_call(account, contract.parameters)
        if contract.when and is_met(contract.when, call.scope) is not True:
            continue
        try:
            yield account, call, value_of(expression, call.scope)
        except UnknownTermError:
            continue
