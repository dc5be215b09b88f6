import wandb


def report(run, rank, metrics):
    table = {}
    if rank == 0:
        table["f1"] = metrics.f1
        run.log_dict(table, sync_dist=False)
    run.log(table, sync_dist=None)
    for key in table:
        print(key, "all_reduce")
