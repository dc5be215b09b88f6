import os

import wandb

LOCAL_RANK = int(os.environ["LOCAL_RANK"])
RANK = int(os.environ["RANK"])


def setup(config):
    if LOCAL_RANK == 0:
        wandb.init(project=config.project)  # dt: DT609
