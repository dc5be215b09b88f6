import argparse
import os
import time

import torch
import torch.distributed as dist
from model import ModelArgs, Transformer
from torch.distributed.fsdp import fully_shard


def set_modules_to_forward_prefetch(model, num):
    for i, layer in enumerate(model.layers[:-num]):
        layer.set_modules_to_forward_prefetch([model.layers[i + num]])


def full_state(model):
    state = {}
    for name, parameter in model.named_parameters():
        full = parameter.full_tensor()
        if dist.get_rank() == 0:
            state[name] = full.cpu()
    return state


def checkpoint(model, folder):
    state = full_state(model)
    if dist.get_rank() == 0:
        torch.save(state, os.path.join(folder, f"{int(time.time())}.pt"))
    dist.barrier()


def main(args):
    rank = int(os.environ["LOCAL_RANK"])
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    config = ModelArgs()
    model = Transformer(config)
    for layer in model.layers:
        fully_shard(layer)
    fully_shard(model)
    if args.explicit_prefetching:
        set_modules_to_forward_prefetch(model, 1)
    optim = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(8):
        x = torch.randint(0, config.vocab_size, (4, config.max_seq_len))
        loss = model(x).sum()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        optim.step()
        optim.zero_grad()
        if rank == 0:
            print(f"step {step} loss {loss.item():.3f}", flush=True)
    checkpoint(model, os.path.dirname(os.path.abspath(__file__)))
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--explicit-prefetching", action="store_true")
    main(parser.parse_args())
