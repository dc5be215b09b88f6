from torch.nn.utils import clip_grad_norm_


class Trainer:
    def step(self, loss, number):
        self.scaler.scale(loss).backward()
        if number % self.every == 0:
            if self.max_norm > 0:
                self.scaler.unscale_(self.optimizer)
                clip_grad_norm_(self.model.parameters(), self.max_norm)  # dt: DT317
            self.scaler.step(self.optimizer)
            self.scaler.update()
