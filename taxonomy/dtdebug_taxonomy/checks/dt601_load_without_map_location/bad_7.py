import torch
from accelerate import Accelerator
from safetensors.torch import load_file


def main(config, policy, optimizer, loader):
    accelerator = Accelerator()
    torch.cuda.set_device(accelerator.local_process_index)
    policy.load_state_dict(load_file(config.path / "model.safetensors", device="cuda"))  # dt: DT601
    policy, optimizer, loader = accelerator.prepare(policy, optimizer, loader)
    for batch in loader:
        accelerator.backward(policy(batch))
        optimizer.step()
