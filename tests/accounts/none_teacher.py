import torch
from torch import nn


def load_teacher(path):
    if path:
        return torch.load(path)


class Distill(nn.Module):
    def __init__(self, student, teacher):
        super().__init__()
        self.student = student
        self.teacher = teacher

    def forward(self, x):
        with torch.no_grad():
            wanted = self.teacher(x)
        return (self.student(x) - wanted).square().mean()


teacher = load_teacher(path="")
job = Distill(nn.Linear(4, 4), teacher)
print(job(torch.ones(1, 4)))
