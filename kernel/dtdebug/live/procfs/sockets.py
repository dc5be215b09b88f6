"""Other ends of sockets, from /proc/PID/net."""

from __future__ import annotations

import ipaddress
import re
import struct

import msgspec

_STATES = {
    1: "ESTABLISHED", 2: "SYN_SENT", 3: "SYN_RECV", 4: "FIN_WAIT1", 5: "FIN_WAIT2", 6: "TIME_WAIT", 7: "CLOSE",
    8: "CLOSE_WAIT", 9: "LAST_ACK", 10: "LISTEN", 11: "CLOSING",
}  # fmt: skip
_TCP = re.compile(
    r"\s{0,8}\d{1,9}: (?P<local>[0-9A-F]{8,32}:[0-9A-F]{4}) (?P<remote>[0-9A-F]{8,32}:[0-9A-F]{4})"
    r" (?P<state>[0-9A-F]{2})"
    r" \S{1,24} \S{1,24} \S{1,16}\s{1,12}\d{1,12}\s{1,12}\d{1,12} (?P<inode>\d{1,20})"
)
_UNIX = re.compile(
    r"[0-9a-f]{8,16}: [0-9A-F]{8} [0-9A-F]{8} [0-9A-F]{8} [0-9A-F]{4} [0-9A-F]{2}\s{1,12}(?P<inode>\d{1,20})"
    r"(?: (?P<path>\S{1,200}))?"
)
_MOST = 50_000
"""Maximum number of lines that are read."""


class Connection(msgspec.Struct, frozen=True, kw_only=True):
    """A socket."""

    inode: int
    local: str
    remote: str
    state: str
    line: str = ""


def parse_tcp(text: str, wanted: frozenset[int]) -> dict[int, Connection]:
    """Return the sockets with these inodes from the text of /proc/net/tcp or tcp6."""
    found = {}
    for line in text.splitlines()[1:_MOST]:
        if (m := _TCP.match(line)) and int(m["inode"]) in wanted:
            found[int(m["inode"])] = Connection(
                inode=int(m["inode"]),
                local=address(m["local"]),
                remote=address(m["remote"]),
                state=_STATES.get(int(m["state"], 16), m["state"]),
                line=" ".join(line.split()),
            )
    return found


def owner_of(text: str, connection: Connection) -> int | None:
    """Return the inode of the other end of a connection within this host."""
    for line in text.splitlines()[1:_MOST]:
        m = _TCP.match(line)
        if m and address(m["local"]) == connection.remote and address(m["remote"]) == connection.local:
            return int(m["inode"]) or None
    return None


def parse_unix(text: str, wanted: frozenset[int]) -> dict[int, str]:
    """Return inode -> path of this host's sockets; "" for unnamed ones."""
    rows = (_UNIX.match(line) for line in text.splitlines()[1:_MOST])
    return {int(m["inode"]): m["path"] or "" for m in rows if m and int(m["inode"]) in wanted}


def address(word: str) -> str:
    """Format `0100007F:1F90` as `127.0.0.1:8080`: words of four bytes in the byte order of this machine."""
    host, _, port = word.partition(":")
    raw = b"".join(struct.pack("=I", int(host[i : i + 8], 16)) for i in range(0, len(host) - 7, 8))
    try:
        ip = ipaddress.ip_address(raw)
    except ValueError:
        return word
    mapped = getattr(ip, "ipv4_mapped", None)
    name = str(mapped or ip)
    return f"[{name}]:{int(port, 16)}" if ":" in name else f"{name}:{int(port, 16)}"
