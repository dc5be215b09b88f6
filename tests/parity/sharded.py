# Tensor and sequence parallelism: silent faults of public reports, rebuilt small; `good` is the healthy twin.
import sys

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)

case, good = sys.argv[1], "good" in sys.argv[2:]
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
VOCABULARY, WIDTH, HEADS = 32, 16, 4


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.q_norm = nn.LayerNorm(WIDTH // HEADS)

    def forward(self, x):
        b, s, _ = x.shape
        q, k, v = (w(x).view(b, s, -1, WIDTH // HEADS).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        y = F.scaled_dot_product_attention(self.q_norm(q), k, v, is_causal=True)
        return self.wo(y.transpose(1, 2).reshape(b, s, -1))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention_norm, self.attention = nn.LayerNorm(WIDTH), Attention()
        self.mlp_norm = nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))

    def forward(self, x):
        x = x + self.attention(self.attention_norm(x))
        return x + self.mlp(self.mlp_norm(x))


class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.norm = nn.Embedding(VOCABULARY, WIDTH), nn.LayerNorm(WIDTH)
        self.blocks = nn.ModuleList([Block(), Block()])
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        for p in self.parameters():
            if p.ndim == 1:
                nn.init.normal_(p, 0.5, 0.3)

    def forward(self, ids):
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


ATTENTION = {"wq": ColwiseParallel(), "wk": ColwiseParallel(), "wv": ColwiseParallel(), "wo": RowwiseParallel()}
MLP = {"mlp.0": ColwiseParallel(), "mlp.2": RowwiseParallel()}


def tokens(step, data=0, n=4, length=12):
    own = torch.Generator().manual_seed(1000 * step + data)
    return torch.randint(0, VOCABULARY, (n, length), generator=own)


def summed_on_backward(parameters, group, share=1):
    """Sum the gradients of parameters that each rank uses on its own part."""

    def reduce_gradient(p):
        dist.all_reduce(p.grad, group=group)
        p.grad.div_(share)

    for p in parameters:
        p.register_post_accumulate_grad_hook(reduce_gradient)


def train(model, loss_of, steps=6, before=lambda: None, micro=1):
    optimizer = torch.optim.SGD(model.parameters(), 0.05, foreach=False)
    for step in range(1, steps + 1):
        for part in range(micro):
            loss_of(step * 10 + part).backward()  # HERE
        before()
        optimizer.step()
        optimizer.zero_grad()


def next_token(model, data=0):
    def loss(step):
        ids = tokens(step, data)
        return F.cross_entropy(model(ids)[:, :-1].flatten(0, 1), ids[:, 1:].flatten())

    return loss


def tensor_parallel(mesh, styles=MLP, share=1):
    """Shard the layers; `share` is by what the sum of the gradients of the norms within is divided, 0 for no sum."""
    model = LM()
    for block in model.blocks:
        parallelize_module(block, mesh, {f"attention.{n}": s for n, s in ATTENTION.items()} | styles)
        if share:
            summed_on_backward(block.attention.q_norm.parameters(), mesh.get_group(), share)
    return model


def norm_of_own_heads(share=0):  # NVIDIA/Megatron-LM#7452: a norm within sharded heads, its gradient is never summed
    model = tensor_parallel(init_device_mesh("cpu", (world,)), share=1 if good else share)
    train(model, next_token(model))


def norm_gradient_averaged():  # EleutherAI/gpt-neox#1259: averaged where it must be summed
    norm_of_own_heads(world)


class RowLinear(nn.Module):
    """A row-wise linear layer written by hand."""

    def __init__(self, linear, mesh, how):
        super().__init__()
        self.weight = nn.Parameter(distribute_tensor(linear.weight.data, mesh, [Shard(1)]))
        self.bias = nn.Parameter(distribute_tensor(linear.bias.data, mesh, [Replicate()]))
        self.mesh, self.how = mesh, how

    def forward(self, x):
        weight, bias = self.weight.to_local(), self.bias.to_local()
        if self.how == "each":
            return Reduce.apply(F.linear(x, weight, bias), self.mesh.get_group())
        if self.how == "scaled":
            return Reduce.apply(F.linear(x, weight, bias / world), self.mesh.get_group())
        return Reduce.apply(F.linear(x, weight), self.mesh.get_group()) + bias


class Reduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        return funcol.all_reduce(x, "sum", group).clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


def by_hand(how):
    mesh = init_device_mesh("cpu", (world,))
    model = tensor_parallel(mesh, {"mlp.0": MLP["mlp.0"]})
    for block in model.blocks:
        block.mlp[2] = RowLinear(block.mlp[2], mesh, "after" if good else how)
    train(model, next_token(model))


def bias_on_each_rank():  # Wenyueh/MinivLLM#80, huggingface/text-generation-inference#1036
    by_hand("each")


def bias_gradient_divided():  # pytorch/torchtitan#4332
    by_hand("scaled")


def batches_of_each_rank():  # pytorch/torchtitan#49, deepspeedai/DeepSpeed#7199
    model = tensor_parallel(init_device_mesh("cpu", (world,)))
    train(model, next_token(model, 0 if good else rank))


class Head(nn.Module):
    """A head whose input gradient is a part on each rank."""

    def __init__(self, linear, mesh):
        super().__init__()
        self.weight = nn.Parameter(distribute_tensor(linear.weight.data, mesh, [Shard(0)]))
        self.mesh = mesh

    def forward(self, x):
        x = DTensor.from_local(x, self.mesh, [Replicate()], run_check=False)
        x = x.to_local(grad_placements=[Partial()] if good else [Replicate()])
        y = F.linear(x, self.weight.to_local())
        return DTensor.from_local(y, self.mesh, [Shard(-1)], run_check=False).full_tensor()


def partial_gradient_called_whole():  # pytorch/torchtitan#3412
    mesh = init_device_mesh("cpu", (world,))
    model = tensor_parallel(mesh)
    model.head = Head(model.head, mesh)
    train(model, next_token(model))


def weights_of_each_rank():  # each rank's own numbers are taken for replicated ones
    mesh = init_device_mesh("cpu", (world,))
    model = tensor_parallel(mesh)
    own = torch.Generator().manual_seed(0 if good else rank)
    model.norm.weight.data = torch.rand(WIDTH, generator=own)
    norm = {
        "norm": SequenceParallel(sequence_dim=1),
        "head": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate()),
    }
    parallelize_module(model, mesh, norm, src_data_rank=None)
    model.norm.register_forward_pre_hook(lambda m, a: (distribute(a[0], mesh),), prepend=True)
    train(model, next_token(model))


def distribute(x, mesh):
    return DTensor.from_local(x, mesh, [Replicate()], run_check=False).redistribute(mesh, [Shard(1)])


def replicas_not_averaged(average=False):  # two replicas of a tensor-parallel model, and nothing between them
    mesh = init_device_mesh("cpu", (2, world // 2), mesh_dim_names=("dp", "tp"))
    model = tensor_parallel(mesh["tp"])

    def reduce_replicas():
        for p in model.parameters():
            local = p.grad.to_local() if isinstance(p.grad, DTensor) else p.grad
            if good or average:
                dist.all_reduce(local, group=mesh["dp"].get_group())
            if good:
                local.div_(2)

    train(model, next_token(model, mesh["dp"].get_local_rank()), before=reduce_replicas)


def replicas_summed():
    replicas_not_averaged(average=True)


def sequence_parallel():
    """Healthy or not: a final norm that the plan of a sequence-parallel model leaves out."""
    mesh = init_device_mesh("cpu", (world,))
    model = LM()
    plan = {
        "embed": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
        "head": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate()),
    }
    if good:
        plan["norm"] = SequenceParallel()
    parallelize_module(model, mesh, plan)
    for block in model.blocks:
        styles = {f"attention.{n}": s for n, s in ATTENTION.items()} | MLP
        styles |= {
            "attention_norm": SequenceParallel(),
            "mlp_norm": SequenceParallel(),
            "attention": PrepareModuleInput(input_layouts=Shard(1), desired_input_layouts=Replicate()),
            "attention.wo": RowwiseParallel(output_layouts=Shard(1)),
            "mlp": PrepareModuleInput(input_layouts=Shard(1), desired_input_layouts=Replicate()),
            "mlp.2": RowwiseParallel(output_layouts=Shard(1)),
        }
        parallelize_module(block, mesh, styles)
        summed_on_backward(block.attention.q_norm.parameters(), mesh.get_group())
    train(model, next_token(model))


def loss_scaled_by_the_group():  # InternLM/xtuner#1004: a sum over the group whose gradient is summed once more
    mesh = init_device_mesh("cpu", (world,))
    model = tensor_parallel(mesh)
    inner = model.forward

    def forward(ids):
        each = F.cross_entropy(inner(ids)[:, :-1].flatten(0, 1), ids[:, 1:].flatten(), reduction="none")
        share = each.sum() / each.numel() / world
        if good:
            return Reduce.apply(share, mesh.get_group())
        return dist.nn.functional.all_reduce(share, group=mesh.get_group())

    model.forward = forward
    train(model, lambda step: model(tokens(step)))


def two_dimensions():
    """Tensor parallelism below `fully_shard`, and a loss that is divided by the number of replicas."""
    mesh = init_device_mesh("cpu", (2, world // 2), mesh_dim_names=("dp", "tp"))
    model = tensor_parallel(mesh["tp"], share=0)
    for block in model.blocks:
        block.attention.q_norm = nn.Identity()
        fully_shard(block, mesh=mesh["dp"])
    fully_shard(model, mesh=mesh["dp"])
    loss = next_token(model, mesh["dp"].get_local_rank())
    train(model, lambda step: loss(step) if good else loss(step) / mesh["dp"].size())


def parallel_loss():
    """The loss is computed on sharded classes; it is divided by the number of ranks."""
    mesh = init_device_mesh("cpu", (world,))
    model = tensor_parallel(mesh)
    parallelize_module(model, mesh, {"head": ColwiseParallel(output_layouts=Shard(-1), use_local_output=False)})
    optimizer = torch.optim.SGD(model.parameters(), 0.05, foreach=False)
    for step in range(1, 7):
        with loss_parallel():
            ids = tokens(step)
            loss = F.cross_entropy(model(ids).flatten(0, 1), ids.flatten())
            (loss if good else loss / world).backward()
        optimizer.step()
        optimizer.zero_grad()


globals()[case]()
print("done", flush=True)
dist.destroy_process_group()
