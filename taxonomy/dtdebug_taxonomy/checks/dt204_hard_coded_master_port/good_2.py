import os
import socket


def free_port():
    with socket.socket() as s:
        s.bind(("", 0))
        return s.getsockname()[1]


os.environ["MASTER_PORT"] = str(free_port())
