from torch.nn.utils import clip_grad_norm_


class Trainer:
    def train_step(self, batch):
        loss = self.model(batch).mean()
        loss.backward()
        self.optimizer.step()
        self.scheduler.step()
        norm = clip_grad_norm_(self.model.parameters(), self.args.max_norm)  # dt: DT322
        self.optimizer.zero_grad()
        return norm
