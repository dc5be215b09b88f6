import datetime

import torch.distributed as dist


def setup(args):
    timeout = datetime.timedelta(0, args.seconds)
    dist.init_process_group(backend=args.backend, timeout=timeout)
    dist.new_group([0], timeout=args.timeout)
