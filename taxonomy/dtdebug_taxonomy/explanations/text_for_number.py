"""A string where a number is needed: a variable of the environment, an option without a type, a number in quotes."""

from __future__ import annotations

import ast
import re

from dtdebug_taxonomy.explanations.account_edits import UNTYPED, typed_option
from dtdebug_taxonomy.explanations.account_words import Edit, find_spans, replace_expression
from dtdebug_taxonomy.explanations.faults import TEXT_FOR_NUMBER, Fault
from dtdebug_taxonomy.inference.account_call import chains_of, names_in_words, parse_line, read_call
from dtdebug_taxonomy.model.account import Account, Link

_TEXT = re.compile(r"'(?P<number>-?\d{1,12}(?P<part>\.\d{0,12})?(?P<power>e[+-]?\d{1,3})?)'")
_REFUSED = re.compile(r"TypeError: .{0,200}?(?:'str'|\bstr\b)")
_ENVIRONMENT = ("environ", "getenv")


def of_text_for_number(account: Account) -> Fault | None:
    """Return the one expression of the line that is a number as a string, with the line that made it."""
    if not _REFUSED.match(account.exception) or account.place is None:
        return None
    on_line = names_in_words(account.place.code)
    rows = [link for link in account.links if link.depth == 0 and _TEXT.fullmatch(link.value.text)]
    rows = [link for link in rows if link.value.name in on_line or link.value.name in account.place.code]
    known = {link.value.name: link.value.text for link in rows} or _text_arguments(account)
    if len(known) != 1:
        return None
    ((name, text),) = known.items()
    chain = next(iter(chains_of(account, name)), ()) if rows else account.links
    link = next((each for each in chain if _is_list_of_texts(each, text)), None)
    link = link or next((each for each in reversed(chain) if each.value.text == text), None)
    link = link or next((each for each in chain if len(find_spans(each.place.code, (text,))) == 1), None)
    if link is None or link.how == "file":
        return None  # how a file has to write it is said by the account
    found = _TEXT.fullmatch(text)
    kind = "float" if found is not None and (found["part"] or found["power"]) else "int"
    said = f"`{name}` is {text}, a string, not a number"
    if (typed := typed_option(link)) is not None:
        return Fault(said, UNTYPED, link, typed, evidence=TEXT_FOR_NUMBER)
    edit = _convert_variable(link, kind)
    if edit is not None:
        return Fault(said, f"what the environment gives is text: convert it with `{kind}`.", link, edit)
    spans = find_spans(link.place.code, (text,))
    edit = replace_expression(link.place, spans[0], text.strip("'")) if len(spans) == 1 else None
    fix = "write it without quotes." if edit is not None else f"convert it with `{kind}`, where it is read."
    return Fault(said, fix, link, edit)


def _is_list_of_texts(link: Link, text: str) -> bool:
    """True for an option that takes several values, one of which is a text, and has no type."""
    return link.value.text.startswith("[") and text in link.value.text and typed_option(link) is not None


def _text_arguments(account: Account) -> dict[str, str]:
    """Return the arguments of the call that are numbers as strings, by the program's expressions."""
    call = read_call(account)
    texts = {words: call.texts.get(name, "") for name, (words, _) in call.expressions.items()}
    return {words: text for words, text in texts.items() if _TEXT.fullmatch(text) and words != text}


def _convert_variable(link: Link, kind: str) -> Edit | None:
    """Return the line with what it reads from the environment made a number."""
    tree = parse_line(link.place.code) if link.place.code.isascii() else None
    match tree:
        case ast.Module(body=[ast.Assign(value=value)] | [ast.AnnAssign(value=ast.expr() as value)]):
            owner = (
                value.func if isinstance(value, ast.Call) else value.value if isinstance(value, ast.Subscript) else None
            )
            if owner is not None and any(each in ast.unparse(owner) for each in _ENVIRONMENT):
                span = (value.col_offset, value.end_col_offset or 0)
                return replace_expression(link.place, span, f"{kind}({link.place.code[slice(*span)]})")
    return None
