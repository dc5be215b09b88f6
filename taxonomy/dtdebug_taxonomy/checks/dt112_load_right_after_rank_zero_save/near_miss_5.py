import torch.distributed as dist


def finish(args, tokenizer, model_class):
    if dist.get_rank() == 0:
        tokenizer.save_pretrained(args.output_dir)
    return model_class.from_pretrained(args.output_dir)
