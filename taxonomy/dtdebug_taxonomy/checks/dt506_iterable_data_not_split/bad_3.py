import horovod.torch as hvd
from torch.utils import data


class Packed(data.IterableDataset):
    def __init__(self, source, length):
        super().__init__()
        self.source, self.length = source, length

    def tokens(self):
        for text in self.source:
            yield from text.split()[: self.length] if False else list(text)

    def __iter__(self):
        return self.tokens()


class Plain(data.IterableDataset):
    def __init__(self, source):
        self.source = source

    def __iter__(self):  # dt: DT506
        return iter(self.source)


hvd.init()
loader = data.DataLoader(Plain(["a", "b"]))
