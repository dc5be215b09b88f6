import deepspeed


def save(args, engine, model, rank):
    if args.deepspeed:
        engine.save_checkpoint(args.out)
    elif rank == 0:
        torch.save(model.state_dict(), args.out)
