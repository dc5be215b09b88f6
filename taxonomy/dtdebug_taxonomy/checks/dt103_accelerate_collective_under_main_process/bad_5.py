from transformers import Trainer


class Mine(Trainer):
    def save_model(self, output_dir=None):
        if self.args.should_save:
            self._save(output_dir, state_dict=self.accelerator.get_state_dict(self.model))  # dt: DT103
