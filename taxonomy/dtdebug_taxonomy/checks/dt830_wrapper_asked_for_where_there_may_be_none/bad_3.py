import accelerate


class Trainer:
    def fit(self):
        self.accelerator = accelerate.Accelerator()
        net = self.accelerator.prepare(self.net)
        return net.module.generate()  # dt: DT830
