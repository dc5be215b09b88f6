from pathlib import Path

import torch
import torch.distributed as dist


def weights(path: Path, address):
    if path.exists():
        return torch.load(path, map_location="cpu")
    else:
        if dist.get_rank() == 0:
            torch.hub.download_url_to_file(address, path)
            dist.barrier()  # dt: DT114
        else:
            dist.barrier()
        return torch.load(path, map_location="cpu")
