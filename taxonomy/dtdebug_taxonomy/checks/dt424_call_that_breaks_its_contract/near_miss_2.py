import torch


class Samples:
    def __init__(self):
        self.rows = []

    def add(self, row):
        self.rows.append(row)

    def together(self):
        return torch.stack([r for r in self.rows])


samples = Samples()
samples.add(torch.ones(2))
print(samples.together())
