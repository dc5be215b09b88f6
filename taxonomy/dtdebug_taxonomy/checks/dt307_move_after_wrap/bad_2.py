import torch


class Trainer:
    def __init__(self, model, device):
        self.device = device
        self.model = torch.nn.parallel.DistributedDataParallel(model.to(device), device_ids=[device.index])

    def fit(self, epochs):
        for epoch in range(epochs):
            self.model.to(self.device)  # dt: DT307
            self.model(torch.ones(2)).sum().backward()
            self.model.module.to("cpu")
            torch.save(self.model.module.state_dict(), f"{epoch}.pt")
