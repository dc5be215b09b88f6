import accelerate


class Trainer:
    def fit(self):
        self.accelerator = accelerate.Accelerator()
        net = self.accelerator.prepare(self.net)
        return self.accelerator.unwrap_model(net).generate()  # dt: DT830
