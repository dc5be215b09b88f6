class Trainer:
    def epoch(self, loader):
        frames = 0
        for audio in loader:
            frames += audio.numel()
            if frames >= self.frames_per_step:  # dt: DT326
                self.model(audio).backward()
                self.optimizer.step()
                self.optimizer.zero_grad()
                frames = 0
            else:
                with self.model.no_sync():
                    self.model(audio).backward()
