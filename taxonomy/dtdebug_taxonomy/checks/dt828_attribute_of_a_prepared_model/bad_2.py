from accelerate import Accelerator


class Trainer:
    def __init__(self, text_encoder, optimizer):
        self.accelerator = Accelerator()
        self.text_encoder, self.optimizer = self.accelerator.prepare(text_encoder, optimizer)
        self.unet = text_encoder
        self.unet = self.accelerator.prepare(self.unet)

    def clip(self):
        return self.unet.get_input_embeddings()  # dt: DT828
