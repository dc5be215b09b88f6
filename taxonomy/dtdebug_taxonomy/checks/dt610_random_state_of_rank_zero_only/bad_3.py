import torch


class Trainer:
    def save(self):
        if self.accelerator.is_main_process:
            states = dict(torch=torch.get_rng_state(), model=self.model.state_dict())  # dt: DT610
            torch.save(states, self.path)

    def load(self):
        states = torch.load(self.path, map_location="cpu")
        torch.set_rng_state(states["torch"])
