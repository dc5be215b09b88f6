from accelerate import Accelerator


class Trainer:
    def __init__(self, cfg, model, optimizer):
        self.cfg = cfg
        self.accelerator = Accelerator()  # dt: DT834
        self.model, self.optimizer = self.accelerator.prepare(model, optimizer)

    def fit(self, loader):
        total = len(loader) // self.cfg.grad_accum_steps
        for batch in loader:
            with self.accelerator.accumulate(self.model):
                self.accelerator.backward(self.model(batch))
                self.optimizer.step()
                self.optimizer.zero_grad()
        return total
