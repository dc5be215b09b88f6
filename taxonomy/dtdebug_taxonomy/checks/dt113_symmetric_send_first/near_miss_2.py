import torch
import torch.distributed as dist


def ask(question: torch.Tensor, server: int) -> torch.Tensor:
    answer = torch.empty_like(question)
    dist.send(question, server)
    dist.recv(answer, src=server)
    return answer


if dist.get_rank() == 0:
    ask(torch.ones(1), 1)
else:
    print("serves")
