import torch
import torch.distributed as dist


def finish(args, model, model_class):
    if args.local_rank == -1 or dist.get_rank() == 0:
        model.module.save_pretrained(args.output_dir)
    if args.do_eval and args.local_rank in [-1, 0]:
        model = model_class.from_pretrained(args.output_dir)
    return model
