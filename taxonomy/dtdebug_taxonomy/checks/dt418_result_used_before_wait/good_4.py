import torch.distributed as dist


def gather(parts, output):
    work = dist.all_gather_into_tensor(output, parts, async_op=True)
    shown = parts * 2
    output_rows = output.shape[0]
    if work is not None:
        work.wait()
    return shown, output * output_rows
