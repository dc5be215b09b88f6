from accelerate import Accelerator


class Job:
    def __init__(self, model):
        self.accelerator = Accelerator()
        self.model = model

    def prepare_model(self):
        self.model = self.accelerator.prepare(self.model)

    def run(self):
        self.model.gradient_checkpointing_enable()  # it is not prepared yet
        self.prepare_model()


class LaterJob(Job):
    def set_up(self):
        self.prepare_model()

    def train(self):
        self.model.enable_gradient_checkpointing()
        self.set_up()
