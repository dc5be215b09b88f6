from accelerate import Accelerator


class Trainer:
    def __init__(self, model, optimizer, loader):
        self.accelerator = Accelerator()
        self.model = model
        self.model, self.optimizer, self.loader = self.accelerator.prepare(self.model, optimizer, loader)
        self.has_critics = self.model.has_critics  # dt: DT828
