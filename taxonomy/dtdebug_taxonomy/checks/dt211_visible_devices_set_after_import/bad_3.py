from os import environ

from transformers import AutoModel


class Runner:
    def start(self):
        environ.update({"CUDA_VISIBLE_DEVICES": "3"})  # dt: DT211
        self.model = AutoModel.from_pretrained("gpt2").to("cuda")


Runner().start()
