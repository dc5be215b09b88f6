"""Finds secrets that other languages than English name: `密码: ...`, `пароль=...`, `Kennwort: ...`."""

# ruff: noqa: RUF001 - words and marks of other languages

from __future__ import annotations

import re

from dtdebug.privacy.redact import nearby_values, value_end
from dtdebug_taxonomy.text.lazy_re import lazy_re

_PASSWORD = (
    "密码", "密碼", "口令", "パスワード", "暗証番号", "비밀번호", "암호", "пароль", "contraseña", "contrasena", "clave",
    "mot de passe", "motdepasse", "passwort", "kennwort", "senha", "palavra-passe", "hasło", "haslo", "parola",
    "wachtwoord", "lösenord", "şifre", "sifre", "heslo", "mật khẩu", "kata sandi", "كلمة المرور", "كلمة السر", "סיסמה",
    "पासवर्ड",
)  # fmt: skip
_OTHER = (
    "密钥", "密鑰", "令牌", "秘钥", "秘密鍵", "トークン", "シークレット", "토큰", "비밀키", "токен", "секрет", "ключ",
    "jeton", "secreto",
    "segredo", "geheimnis", "schlüssel", "clé", "chiave", "llave", "chave", "مفتاح",
)  # fmt: skip
"""Words for a token, a secret and a key; a token is also a piece of text that models count."""
_LEAST = 10
"""Minimum length of letters with digits that count as a token or a key."""
_ALL = "|".join(sorted(map(re.escape, (*_PASSWORD, *_OTHER)), key=len, reverse=True))
_NAMED = lazy_re(
    rf"(?i)(?<![a-zа-я])(?P<name>{_ALL})[\"'”」]?[ \t]{{0,4}}(?P<sep>[:=：＝]|是|为|は|->|=>|"
    r"(?:lautet|ist|est|es|è|é|jest|är|это)(?=[ \t]{1,4}[\"'“「«]))[ \t]{0,4}"
    r"(?P<q>[\"'“「«])?(?P<s>(?(q)[^\"'”」»\n]{4,256}|(?![\"']?\*{3})[!-~]{4,256}))"
)


def spans(text: str) -> list[tuple[int, int]]:
    """Return the spans of secret values."""
    return [found.span("s") for found in _NAMED.finditer(text) if _is_secret(found, text)]


def _is_secret(found: re.Match[str], text: str) -> bool:
    value = found["s"]
    if value_end.is_harmless(value, text, found.start("s")):
        return False
    if found["name"].lower() not in _PASSWORD:
        mixed = value.isalnum() and len(value) >= _LEAST and nearby_values.is_a_secret(value, chosen=True)
        return mixed or nearby_values.is_a_secret(value)
    return bool(found["q"]) or found["sep"] in "=＝" or not value.strip(".,;!?)").isalpha()
