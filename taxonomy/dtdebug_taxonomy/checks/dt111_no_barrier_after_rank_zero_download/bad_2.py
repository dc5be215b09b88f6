import os

import torch
from huggingface_hub import snapshot_download
from transformers import AutoModel


def load(args):
    if int(os.environ["LOCAL_RANK"]) == 0:
        snapshot_download(args.repo, local_dir=args.cache_dir)  # dt: DT111
    torch.cuda.set_device(args.local_rank)
    return AutoModel.from_pretrained(args.cache_dir)


if __name__ == "__main__":
    load(parser.parse_args())
