import json

import torch
from torch.nn.parallel import DistributedDataParallel


class Stream(torch.utils.data.IterableDataset):
    files = ("a.jsonl", "b.jsonl")

    def __iter__(self):  # dt: DT506
        for name in self.files:
            for row in open(name):
                yield json.loads(row)["text"]


def main(model):
    model = DistributedDataParallel(model)
    for batch in torch.utils.data.DataLoader(Stream(), batch_size=4):
        model(batch)


if __name__ == "__main__":
    main(None)
