import torch
from tqdm import tqdm


class Trainer:
    def __init__(self, model, data):
        self.model = model
        self.loader = torch.utils.data.DataLoader(
            data,
            batch_size=8,
            sampler=torch.utils.data.distributed.DistributedSampler(data),  # dt: DT502
        )

    def fit(self, max_epochs):
        for ep in tqdm(range(max_epochs)):
            self.loader.sampler.set_epoch(ep)
            for step, batch in enumerate(self.loader):
                self.model(batch)


if __name__ == "__main__":
    Trainer(torch.nn.Identity(), list(range(10))).fit(3)
