from transformers import Trainer


class Mine(Trainer):
    def save_model(self, output_dir=None):
        self._save(output_dir, state_dict=self.accelerator.get_state_dict(self.model))  # dt: DT103
