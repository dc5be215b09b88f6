import deepspeed


class Trainer:
    def save_checkpoint(self, path):
        self.engine.save_checkpoint(path)

    def log(self, rank):
        if rank == 0:
            self.writer.flush()
        self.save_checkpoint("out")
