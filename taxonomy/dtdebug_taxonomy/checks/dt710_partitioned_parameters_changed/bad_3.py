import deepspeed


class Ema:
    def update(self, model):
        for p, shadow in zip(model.parameters(), self.shadow.parameters()):
            with deepspeed.zero.GatheredParameters([p, shadow], enabled=self.zero3):  # dt: DT710
                shadow.data.mul_(self.decay).add_(p.data, alpha=1 - self.decay)
