import deepspeed


class Ema:
    def step(self, parameters):
        with deepspeed.zero.GatheredParameters(parameters, modifier_rank=None):
            for shadow, p in zip(self.shadow_params, parameters):
                shadow.sub_((1 - self.decay) * (shadow - p))
            for i, (shadow, p) in enumerate(zip(self.shadow_params, parameters)):
                shadow.copy_(p.to(shadow.device).data)
