from accelerate import Accelerator


class Trainer:
    def __init__(self, model, opt, loader, steps):
        self.accelerator = Accelerator(gradient_accumulation_steps=steps)  # dt: DT833
        self.model, self.opt, self.loader = self.accelerator.prepare(model, opt, loader)

    def epoch(self):
        for batch in self.loader:
            loss = self.model(batch)
            self.accelerator.backward(loss)
            self.opt.step()
            self.opt.zero_grad()
