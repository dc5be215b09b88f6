import json

import torch.distributed as dist


def vocabulary(words, path):
    if dist.get_rank() == 0:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(sorted(set(words)), file)
    with open(path, encoding="utf-8") as file:  # dt: DT112
        return json.load(file)
