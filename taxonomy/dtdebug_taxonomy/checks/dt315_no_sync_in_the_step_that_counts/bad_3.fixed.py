from contextlib import nullcontext


class Trainer:
    def epoch(self, loader):
        for index, batch in enumerate(loader):
            sync = nullcontext() if (index + 1) % self.every == 0 or index + 2 == len(loader) else self.model.no_sync()  # dt: DT315
            with sync:
                self.model(batch).backward()
            if (index + 1) % self.every == 0 or index + 2 == len(loader):
                self.optimizer.step()
