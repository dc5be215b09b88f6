from accelerate import Accelerator


class Trainer:
    def __init__(self, model, optimizer, grad_accum_every):
        self.accelerator = Accelerator()
        self.grad_accum_every = grad_accum_every
        self.model, self.optimizer = self.accelerator.prepare(model, optimizer)

    def step(self, batches):
        for _ in range(self.grad_accum_every):
            loss = self.model(next(batches))
            self.accelerator.backward(loss / self.grad_accum_every)  # dt: DT316
        self.optimizer.step()
        self.optimizer.zero_grad()
