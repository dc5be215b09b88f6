"""No module of Lightning's."""

import wandb


class Printer:
    def show(self, values):
        wandb.log(values)
