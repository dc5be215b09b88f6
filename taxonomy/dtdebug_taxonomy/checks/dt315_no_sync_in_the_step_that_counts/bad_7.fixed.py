from torch.nn.parallel import DistributedDataParallel as DDP


class Runner:
    def __init__(self, model, optimizer, scaler, every):
        self.model, self.optimizer, self.scaler = DDP(model), optimizer, scaler
        self.every = every

    def micro_step(self, batch):
        loss = self.model(batch).mean() / self.every
        self.scaler.scale(loss).backward()

    def train(self, batches, several):
        for n, batch in enumerate(batches):
            if several:
                self.model.require_backward_grad_sync = n % self.every == 0  # dt: DT315
            self.micro_step(batch)
            if n % self.every == 0:
                self.scaler.step(self.optimizer)
                self.scaler.update()
