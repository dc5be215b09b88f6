import os
from os import makedirs

import horovod.torch as hvd


def main(cfg):
    hvd.init()
    log_dir = os.path.join(cfg["root"], "logs")
    if cfg["log"] and not os.path.isdir(log_dir):
        makedirs(log_dir, exist_ok=True)  # dt: DT511
    return log_dir


main({"root": "/tmp", "log": True})
