from torch.utils.data import DataLoader, IterableDataset


class Lines(IterableDataset):
    def __iter__(self):
        with open("data.txt") as f:
            yield from f


for line in DataLoader(Lines()):
    print(line)
