import os

_before = None


def begin():
    global _before
    _before = os.environ.get("HOME")


def end():
    global _before
    if _before is not None:
        os.environ["HOME"] = _before
        _before = None
