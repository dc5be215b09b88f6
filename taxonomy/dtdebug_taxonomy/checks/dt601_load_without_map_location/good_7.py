from accelerate import Accelerator
from safetensors.torch import load_file


def main(config, policy):
    accelerator = Accelerator()
    policy.load_state_dict(load_file(config.path / "model.safetensors", device=f"cuda:{accelerator.local_process_index}"))
    if accelerator.is_main_process:
        policy.load_state_dict(load_file(config.path / "average.safetensors", device="cuda"))
    return accelerator.prepare(policy)
