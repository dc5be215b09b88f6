"""Arguments that a call gives to no parameter, or to another one than that of their name."""

from __future__ import annotations

import ast
import re

from dtdebug_taxonomy.explanations.account_words import replace_expression
from dtdebug_taxonomy.explanations.faults import Fault
from dtdebug_taxonomy.inference.account_call import parse_line
from dtdebug_taxonomy.model.account import Account
from dtdebug_taxonomy.text.near_names import near_name

_UNEXPECTED = re.compile(r"got an unexpected keyword argument '(?P<name>\w{1,80})'")


def of_arguments(account: Account) -> Fault | None:
    """Return the keyword that a call does not take with the near one, or the argument in another's position."""
    parameters = account.refusal.parameters if account.refusal is not None else ()
    place = account.place
    call = _call(account) if parameters and place is not None and place.code.isascii() else None
    if call is None or place is None:
        return None
    shift = place.mark[0] if place.mark[1] > place.mark[0] else 0
    api = ast.unparse(call.func)
    unexpected = _UNEXPECTED.search(account.exception)
    for keyword in call.keywords if unexpected is not None else ():
        written = keyword.arg or ""
        near = near_name(written, parameters)
        if unexpected is not None and written == unexpected["name"] and written not in parameters and near:
            begin = shift + keyword.col_offset
            edit = replace_expression(place, (begin, begin + len(written)), near)
            said = f"`{api}` takes no `{written}`: it takes `{near}`"
            return Fault(said, f"write `{near}=`.", None, edit, place)
    given = {k.arg for k in call.keywords}
    if unexpected is not None or not call.args or any(isinstance(a, ast.Starred) for a in call.args):
        return None
    at, last = len(call.args) - 1, call.args[-1]
    own = last.id if isinstance(last, ast.Name) else ""
    if at < len(parameters) and own in parameters[at + 1 :] and own not in given and parameters[at] not in given:
        begin, end = shift + last.col_offset, shift + (last.end_col_offset or 0)
        edit = replace_expression(place, (begin, end), f"{own}={own}")
        said = f"`{own}` is passed to `{api}` as `{parameters[at]}`, which comes before `{own}` among its parameters"
        return Fault(said, f"pass it by its name: `{own}={own}`.", None, edit, place)
    return None


def _call(account: Account) -> ast.Call | None:
    """Return the call of the line that raised."""
    place = account.place
    if place is None:
        return None
    begin, end = place.mark
    match parse_line(place.code[begin:end] if end > begin else place.code):
        case ast.Module(body=[ast.Expr(value=ast.Call() as call)] | [ast.Assign(value=ast.Call() as call)]):
            return call
    return None
