import deepspeed


class Runner:
    def __init__(self, config, model):
        self.engine, _, self.loader, _ = deepspeed.initialize(model=model, config=config)
        self.is_main = self.engine.global_rank == 0

    def end_of_epoch(self, epoch):
        if self.is_main:
            print("epoch", epoch)
        self.engine.save_checkpoint("out", tag=f"epoch{epoch}")  # dt: DT102

    def export(self):
        if not self.is_main:
            return
        self.engine.save_16bit_model("out")  # dt: DT102
