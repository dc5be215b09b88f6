import json
import random

from torch.utils.data import Dataset
from transformers import Trainer


class Rows(Dataset):
    def __init__(self, names):
        self.rows = []
        for name in names:
            with open(name) as file:
                self.rows += json.load(file)
        random.shuffle(self.rows)  # dt: DT523

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def main(model, arguments):
    Trainer(model=model, args=arguments, train_dataset=Rows(["a.json"])).train()


if __name__ == "__main__":
    main(None, None)
