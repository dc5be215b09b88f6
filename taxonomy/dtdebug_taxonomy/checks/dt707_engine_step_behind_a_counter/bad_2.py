import deepspeed


class Trainer:
    def __init__(self, args, model):
        self.args = args
        self.engine, _, _, _ = deepspeed.initialize(model=model, config=args.config)

    def fit(self, loader):
        for step, batch in enumerate(loader):
            self.engine.backward(self.engine(batch))
            update = step % self.args.accumulate == self.args.accumulate - 1
            if update and step > 0:
                self.engine.step()  # dt: DT707
