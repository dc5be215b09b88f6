import horovod.torch as hvd
from torch.nn.utils import clip_grad_norm_ as clip


class Trainer:
    def __init__(self, model, opt, args):
        self.model, self.args = model, args
        self.optimizer = hvd.DistributedOptimizer(opt, named_parameters=model.named_parameters())

    def step(self, loss):
        loss.backward()
        if self.args.clip:
            clip(self.model.parameters(), self.args.clip)  # dt: DT805
        self.optimizer.step()
