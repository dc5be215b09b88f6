class Trainer:
    def train(self, loader):
        for x, y in loader:
            loss = self.criterion(self.model(x), y)
            loss.backward()
            self.optimizer.zero_grad()  # dt: DT325
            self.optimizer.step()
            self.scheduler.step()
