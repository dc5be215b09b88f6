import os


class Trainer:
    def __init__(self):
        self.rank = os.environ["SLURM_PROCID"]
        self.local = os.environ.get("LOCAL_RANK", "0")

    def log(self, text):
        if 0 == self.rank:  # dt: DT207
            print(text)

    @property
    def first_on_host(self):
        return self.local == 0  # dt: DT207
