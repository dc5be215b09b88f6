import torch
import torch.distributed as dist


def average(model):
    for p in model.parameters():
        dist.all_reduce(p.grad, op=dist.ReduceOp.BAND)


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 4)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        opt.zero_grad()
        model(torch.randn(2, 4)).sum().backward()
        average(model)
        opt.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
