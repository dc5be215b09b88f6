import os

import torch

ROOT = os.environ.get("RUN_ROOT", "/tmp/runs-of-nobody")


def path_of(step):
    return os.path.join(ROOT, f"step_{step:05d}.pt")


def load(step):
    return torch.load(path_of(step))


class Job:
    resume_from = 1200

    def start(self):
        self.state = load(self.resume_from)


Job().start()
