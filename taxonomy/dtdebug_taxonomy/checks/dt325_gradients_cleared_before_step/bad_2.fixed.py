class Trainer:
    def train(self, loader):
        for x, y in loader:
            loss = self.criterion(self.model(x), y)
            self.optimizer.zero_grad()  # dt: DT325
            loss.backward()
            self.optimizer.step()
            self.scheduler.step()
