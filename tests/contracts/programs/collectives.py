"""Programs of two ranks: `breaks_ID` raises on a rank because it breaks the contract ID, `keeps_ID` runs."""

import torch
import torch.distributed as dist

BACKEND = "gloo"


def breaks_tensor_is_one_tensor():
    dist.all_reduce([torch.ones(2), torch.ones(2)])


def keeps_tensor_is_one_tensor():
    total = torch.ones(2)
    dist.all_reduce(total)


def breaks_one_output_per_rank():
    outputs = [torch.zeros(2) for _ in range(3)]
    dist.all_gather(outputs, torch.ones(2))


def keeps_one_output_per_rank():
    outputs = [torch.zeros(2) for _ in range(dist.get_world_size())]
    dist.all_gather(outputs, torch.ones(2))


def breaks_outputs_of_the_inputs_size():
    outputs, mine = [torch.zeros(2, 3), torch.zeros(2, 3)], torch.ones(2, 4)
    dist.all_gather(outputs, mine)


def keeps_outputs_of_the_inputs_size():
    outputs, mine = [torch.zeros(2, 3), torch.zeros(2, 3)], torch.ones(2, 3)
    dist.all_gather(outputs, mine)


def breaks_outputs_of_the_inputs_dtype():
    outputs, mine = [torch.zeros(2), torch.zeros(2)], torch.ones(2, dtype=torch.int64)
    dist.all_gather(outputs, mine)


def keeps_outputs_of_the_inputs_dtype():
    outputs, mine = [torch.zeros(2), torch.zeros(2)], torch.ones(2)
    dist.all_gather(outputs, mine)


def breaks_all_gather_output_size():
    whole, mine = torch.zeros(3), torch.ones(2)
    dist.all_gather_into_tensor(whole, mine)


def keeps_all_gather_output_size():
    whole, mine = torch.zeros(4), torch.ones(2)
    dist.all_gather_into_tensor(whole, mine)


def breaks_all_gather_output_dtype():
    whole, mine = torch.zeros(4), torch.ones(2, dtype=torch.int64)
    dist.all_gather_into_tensor(whole, mine)


def keeps_all_gather_output_dtype():
    whole, mine = torch.zeros(4, dtype=torch.int64), torch.ones(2, dtype=torch.int64)
    dist.all_gather_into_tensor(whole, mine)


def breaks_one_object_per_rank():
    dist.all_gather_object([None], "mine")


def keeps_one_object_per_rank():
    dist.all_gather_object([None] * dist.get_world_size(), "mine")


def breaks_gather_list_on_the_destination():
    dist.gather(torch.ones(2), dst=0)


def keeps_gather_list_on_the_destination():
    parts = [torch.zeros(2), torch.zeros(2)] if dist.get_rank() == 0 else None
    dist.gather(torch.ones(2), parts, dst=0)


def breaks_gather_list_length():
    parts = [torch.zeros(2)] if dist.get_rank() == 1 else None
    dist.gather(torch.ones(2), parts, dst=1)


def keeps_gather_list_length():
    parts = [torch.zeros(2), torch.zeros(2)] if dist.get_rank() == 1 else None
    dist.gather(torch.ones(2), parts, dst=1)


def breaks_gather_list_elsewhere():
    parts = [torch.zeros(2), torch.zeros(2)]
    dist.gather(torch.ones(2), parts)


def keeps_gather_list_elsewhere():
    parts = [torch.zeros(2), torch.zeros(2)] if dist.get_rank() == 0 else []
    dist.gather(torch.ones(2), parts)


def breaks_object_gather_list_on_the_destination():
    dist.gather_object("mine", dst=0)


def keeps_object_gather_list_on_the_destination():
    found = [None, None] if dist.get_rank() == 0 else None
    dist.gather_object("mine", found, dst=0)


def breaks_object_gather_list_length():
    found = [None] if dist.get_rank() == 0 else None
    dist.gather_object("mine", found)


def keeps_object_gather_list_length():
    found = [None, None] if dist.get_rank() == 0 else None
    dist.gather_object("mine", found)


def breaks_object_gather_list_elsewhere():
    found = [None, None]
    dist.gather_object("mine", found)


def keeps_object_gather_list_elsewhere():
    found = None if dist.get_rank() else [None, None]
    dist.gather_object("mine", found)


def breaks_scatter_list_on_the_source():
    dist.scatter(torch.zeros(2), src=0)


def keeps_scatter_list_on_the_source():
    parts = [torch.ones(2), torch.ones(2)] if dist.get_rank() == 0 else None
    dist.scatter(torch.zeros(2), parts, src=0)


def breaks_scatter_list_length():
    parts = [torch.ones(2)] * 3 if dist.get_rank() == 0 else None
    dist.scatter(torch.zeros(2), parts, src=0)


def keeps_scatter_list_length():
    parts = [torch.ones(2)] * 2 if dist.get_rank() == 0 else None
    dist.scatter(torch.zeros(2), parts, src=0)


def breaks_scatter_list_elsewhere():
    parts = [torch.ones(2), torch.ones(2)]
    dist.scatter(torch.zeros(2), parts, src=0)


def keeps_scatter_list_elsewhere():
    parts = None if dist.get_rank() else [torch.ones(2), torch.ones(2)]
    dist.scatter(torch.zeros(2), parts, src=0)


def breaks_scatter_part_size():
    mine, parts = torch.zeros(3), [torch.ones(2), torch.ones(2)] if dist.get_rank() == 0 else None
    dist.scatter(mine, parts, src=0)


def keeps_scatter_part_size():
    mine, parts = torch.zeros(2), [torch.ones(2), torch.ones(2)] if dist.get_rank() == 0 else None
    dist.scatter(mine, parts, src=0)


def breaks_scatter_object_list_length():
    got, objects = [None], ["a", "b", "c"]
    dist.scatter_object_list(got, objects, src=0)


def keeps_scatter_object_list_length():
    got, objects = [None], ["a", "b"]
    dist.scatter_object_list(got, objects, src=0)


def breaks_scatter_object_list_on_the_source():
    dist.scatter_object_list([None], src=0)


def keeps_scatter_object_list_on_the_source():
    objects = ["a", "b"] if dist.get_rank() == 0 else None
    dist.scatter_object_list([None], objects, src=0)


def breaks_scatter_object_output():
    dist.scatter_object_list([], ["a", "b"], src=0)


def keeps_scatter_object_output():
    dist.scatter_object_list([None], ["a", "b"], src=0)


def breaks_one_part_per_rank():
    mine, pieces = torch.zeros(2), list(torch.ones(8).chunk(4))
    dist.reduce_scatter(mine, pieces)


def keeps_one_part_per_rank():
    mine, pieces = torch.zeros(4), list(torch.ones(8).chunk(2))
    dist.reduce_scatter(mine, pieces)


def breaks_reduce_scatter_parts_dtype():
    mine, pieces = torch.zeros(4), [torch.ones(4, dtype=torch.int64)] * 2
    dist.reduce_scatter(mine, pieces)


def keeps_reduce_scatter_parts_dtype():
    mine, pieces = torch.zeros(4, dtype=torch.int64), [torch.ones(4, dtype=torch.int64)] * 2
    dist.reduce_scatter(mine, pieces)


def breaks_reduce_scatter_part_size():
    mine, pieces = torch.zeros(3), [torch.ones(4), torch.ones(4)]
    dist.reduce_scatter(mine, pieces)


def keeps_reduce_scatter_part_size():
    mine, pieces = torch.zeros(4), [torch.ones(4), torch.ones(4)]
    dist.reduce_scatter(mine, pieces)


def breaks_reduce_scatter_tensor_size():
    mine, whole = torch.zeros(3), torch.ones(8)
    dist.reduce_scatter_tensor(mine, whole)


def keeps_reduce_scatter_tensor_size():
    mine, whole = torch.zeros(4), torch.ones(8)
    dist.reduce_scatter_tensor(mine, whole)


def breaks_reduce_scatter_tensor_dtype():
    mine, whole = torch.zeros(4, dtype=torch.int64), torch.ones(8)
    dist.reduce_scatter_tensor(mine, whole)


def keeps_reduce_scatter_tensor_dtype():
    mine, whole = torch.zeros(4, dtype=torch.int64), torch.ones(8, dtype=torch.int64)
    dist.reduce_scatter_tensor(mine, whole)


def breaks_all_to_all_outputs():
    outputs, inputs = [torch.zeros(1)] * 3, [torch.ones(1)] * 2
    dist.all_to_all(outputs, inputs)


def keeps_all_to_all_outputs():
    outputs, inputs = [torch.zeros(1), torch.zeros(1)], [torch.ones(1)] * 2
    dist.all_to_all(outputs, inputs)


def breaks_all_to_all_inputs():
    outputs, inputs = [torch.zeros(1), torch.zeros(1)], [torch.ones(1)]
    dist.all_to_all(outputs, inputs)


def keeps_all_to_all_inputs():
    outputs, inputs = [torch.zeros(1), torch.zeros(1)], [torch.ones(1), torch.ones(1)]
    dist.all_to_all(outputs, inputs)


def breaks_all_to_all_single_input_divides():
    out, tokens = torch.zeros(4), torch.ones(5)
    dist.all_to_all_single(out, tokens)


def keeps_all_to_all_single_input_divides():
    out, tokens = torch.zeros(4), torch.ones(4)
    dist.all_to_all_single(out, tokens)


def breaks_all_to_all_single_output_divides():
    out, tokens = torch.zeros(5), torch.ones(4)
    dist.all_to_all_single(out, tokens)


def keeps_all_to_all_single_output_divides():
    out, tokens = torch.zeros(6), torch.ones(6)
    dist.all_to_all_single(out, tokens)


def breaks_all_to_all_single_splits():
    out, tokens, sizes = torch.zeros(4), torch.ones(4), [2, 3]
    dist.all_to_all_single(out, tokens, input_split_sizes=sizes, output_split_sizes=[2, 2])


def keeps_all_to_all_single_splits():
    out, tokens, sizes = torch.zeros(4), torch.ones(4), [2, 2]
    dist.all_to_all_single(out, tokens, input_split_sizes=sizes, output_split_sizes=[2, 2])


def breaks_all_to_all_single_number_of_splits():
    out, tokens, sizes = torch.zeros(4), torch.ones(4), [4]
    dist.all_to_all_single(out, tokens, [2, 2], sizes)


def keeps_all_to_all_single_number_of_splits():
    out, tokens, sizes = torch.zeros(4), torch.ones(4), [2, 2]
    dist.all_to_all_single(out, tokens, [2, 2], sizes)


def breaks_all_to_all_single_output_splits():
    out, tokens, sizes = torch.zeros(4), torch.ones(4), [1, 2]
    dist.all_to_all_single(out, tokens, sizes, [2, 2])


def keeps_all_to_all_single_output_splits():
    out, tokens, sizes = torch.zeros(4), torch.ones(4), [2, 2]
    dist.all_to_all_single(out, tokens, sizes, [2, 2])


def breaks_source_is_a_rank():
    dist.broadcast(torch.ones(2), src=2)


def keeps_source_is_a_rank():
    last = dist.get_world_size() - 1
    dist.broadcast(torch.ones(2), src=last)


def breaks_destination_is_a_rank():
    keeper = dist.get_world_size()
    dist.reduce(torch.ones(2), dst=keeper)


def keeps_destination_is_a_rank():
    dist.reduce(torch.ones(2), dst=1)


def breaks_sends_to_another_rank():
    to = dist.get_rank()
    dist.send(torch.ones(2), dst=to)


def keeps_sends_to_another_rank():
    to = 1 - dist.get_rank()
    if to:
        dist.send(torch.ones(2), dst=to)
    else:
        dist.recv(torch.ones(2), src=to)


def breaks_receives_from_another_rank():
    source = dist.get_rank()
    dist.recv(torch.ones(2), source)


def keeps_receives_from_another_rank():
    if dist.get_rank():
        dist.send(torch.ones(2), dst=0)
    else:
        dist.recv(torch.ones(2), 1)


def breaks_some_operations():
    dist.batch_isend_irecv([])


def keeps_some_operations():
    peer = 1 - dist.get_rank()
    operations = [dist.P2POp(dist.isend, torch.ones(1), peer), dist.P2POp(dist.irecv, torch.ones(1), peer)]
    for work in dist.batch_isend_irecv(operations):
        work.wait()


def breaks_receive_buffer_is_contiguous():
    table = torch.zeros(2, 3)
    if dist.get_rank() == 0:
        dist.recv(table.T, src=1)
    else:
        dist.send(torch.ones(6), dst=0)


def keeps_receive_buffer_is_contiguous():
    table = torch.zeros(3, 2)
    if dist.get_rank() == 0:
        dist.recv(table, src=1)
    else:
        dist.send(torch.ones(6), dst=0)


def breaks_set_up_once():
    dist.init_process_group("gloo")


def breaks_group_is_set_up():
    dist.destroy_process_group()
    dist.all_reduce(torch.ones(2))


def keeps_group_is_set_up():
    dist.all_reduce(torch.ones(2))


def breaks_group_of_existing_ranks():
    dist.new_group([0, 2])


def keeps_group_of_existing_ranks():
    dist.new_group([0, 1])


def breaks_group_not_larger_than_the_world():
    dist.new_group([0, 1, 0])


def keeps_group_not_larger_than_the_world():
    dist.new_group([1, 0])


def breaks_group_names_each_rank_once():
    dist.new_group([1, 1])


def keeps_group_names_each_rank_once():
    dist.new_group([1])


def breaks_subgroup_size_fits():
    dist.new_subgroups(group_size=4)


def keeps_subgroup_size_fits():
    dist.new_subgroups(group_size=2)


def breaks_mesh_covers_the_world():
    from torch.distributed.device_mesh import init_device_mesh

    init_device_mesh("cpu", (2, 2))


def keeps_mesh_covers_the_world():
    from torch.distributed.device_mesh import init_device_mesh

    init_device_mesh("cpu", (2, 1))


def breaks_mesh_names_each_dimension():
    from torch.distributed.device_mesh import init_device_mesh

    init_device_mesh("cpu", (2, 1), mesh_dim_names=("dp",))


def keeps_mesh_names_each_dimension():
    from torch.distributed.device_mesh import init_device_mesh

    init_device_mesh("cpu", (2, 1), mesh_dim_names=("dp", "tp"))


def breaks_mesh_names_differ():
    from torch.distributed.device_mesh import init_device_mesh

    init_device_mesh("cpu", (2, 1), mesh_dim_names=("dp", "dp"))


def keeps_mesh_names_differ():
    from torch.distributed.device_mesh import init_device_mesh

    init_device_mesh("cpu", (1, 2), mesh_dim_names=("dp", "tp"))


def breaks_mesh_device_has_no_index():
    from torch.distributed.device_mesh import init_device_mesh

    init_device_mesh("cpu:0", (2,))


def keeps_mesh_device_has_no_index():
    from torch.distributed.device_mesh import init_device_mesh

    init_device_mesh("cpu", (2,))


def breaks_one_placement_per_mesh_dimension():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, distribute_tensor

    mesh = init_device_mesh("cpu", (2,))
    distribute_tensor(torch.ones(4), mesh, [Replicate(), Replicate()])


def keeps_one_placement_per_mesh_dimension():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, distribute_tensor

    mesh = init_device_mesh("cpu", (2,))
    distribute_tensor(torch.ones(4), mesh, [Replicate()])


def breaks_something_to_train():
    from torch.nn.parallel import DistributedDataParallel

    model = torch.nn.Linear(2, 2).requires_grad_(False)
    DistributedDataParallel(model)


def keeps_something_to_train():
    from torch.nn.parallel import DistributedDataParallel

    model = torch.nn.Linear(2, 2)
    DistributedDataParallel(model)


def breaks_sampler_rank_below_replicas():
    from torch.utils.data import DistributedSampler

    DistributedSampler(range(8), num_replicas=1, rank=1)


def keeps_sampler_rank_below_replicas():
    from torch.utils.data import DistributedSampler

    DistributedSampler(range(8), num_replicas=2, rank=1)


def breaks_one_device_per_process():
    from torch.nn.parallel import DistributedDataParallel

    DistributedDataParallel(torch.nn.Linear(2, 2), device_ids=[0, 1])


def keeps_one_device_per_process():
    from torch.nn.parallel import DistributedDataParallel

    DistributedDataParallel(torch.nn.Linear(2, 2), device_ids=None)


def breaks_checkpoint_of_a_bare_model():
    from torch.nn.parallel import DistributedDataParallel

    state, model = dict(torch.nn.Linear(2, 2).state_dict()), DistributedDataParallel(torch.nn.Linear(2, 2))
    model.load_state_dict(state)


def keeps_checkpoint_of_a_bare_model():
    from torch.nn.parallel import DistributedDataParallel

    model = DistributedDataParallel(torch.nn.Linear(2, 2))
    state = dict(model.state_dict())
    model.load_state_dict(state)


def breaks_devices_of_gpu_modules():
    from torch.nn.parallel import DistributedDataParallel

    DistributedDataParallel(torch.nn.Linear(2, 2), device_ids=[dist.get_rank()])


def keeps_devices_of_gpu_modules():
    from torch.nn.parallel import DistributedDataParallel

    DistributedDataParallel(torch.nn.Linear(2, 2), device_ids=None)


def breaks_synchronized_norm_on_a_gpu():
    from torch.nn.parallel import DistributedDataParallel

    model = torch.nn.SyncBatchNorm.convert_sync_batchnorm(torch.nn.BatchNorm1d(3))
    DistributedDataParallel(model)


def keeps_synchronized_norm_on_a_gpu():
    from torch.nn.parallel import DistributedDataParallel

    DistributedDataParallel(torch.nn.BatchNorm1d(3))


def breaks_parameters_have_their_shape():
    from torch.nn.parallel import DistributedDataParallel

    DistributedDataParallel(torch.nn.LazyLinear(2))


def keeps_parameters_have_their_shape():
    from torch.nn.parallel import DistributedDataParallel

    DistributedDataParallel(torch.nn.Linear(2, 2))


def breaks_containers_are_not_sharded():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    fully_shard(torch.nn.ModuleList([torch.nn.Linear(2, 2)]), mesh=init_device_mesh("cpu", (2,)))


def keeps_containers_are_not_sharded():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    fully_shard(torch.nn.Linear(2, 2), mesh=init_device_mesh("cpu", (2,)))


def breaks_no_scalar_parameters_sharded():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    model = torch.nn.Linear(2, 2)
    model.scale = torch.nn.Parameter(torch.tensor(1.0))
    fully_shard(model, mesh=init_device_mesh("cpu", (2,)))


def keeps_no_scalar_parameters_sharded():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    model = torch.nn.Linear(2, 2)
    fully_shard(model, mesh=init_device_mesh("cpu", (2,)))


def breaks_mesh_of_one_or_two_dimensions():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (1, 1, 2), mesh_dim_names=("a", "b", "c"))
    fully_shard(torch.nn.Linear(2, 2), mesh=mesh)


def keeps_mesh_of_one_or_two_dimensions():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (1, 2), mesh_dim_names=("a", "b"))
    fully_shard(torch.nn.Linear(2, 2), mesh=mesh)


def breaks_part_to_reshard_to():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (2,))
    fully_shard(torch.nn.Linear(2, 2), mesh=mesh, reshard_after_forward=3)


def keeps_part_to_reshard_to():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (2,))
    fully_shard(torch.nn.Linear(2, 2), mesh=mesh, reshard_after_forward=2)


def breaks_send_or_receive():
    dist.P2POp(dist.broadcast, torch.ones(2), 1 - dist.get_rank())


def keeps_send_or_receive():
    dist.P2POp(dist.isend, torch.ones(2), 1 - dist.get_rank())


def breaks_root_is_in_the_group():
    group = dist.new_group([1])
    if dist.get_rank() == 1:
        dist.broadcast(torch.ones(2), src=0, group=group)


def keeps_root_is_in_the_group():
    group = dist.new_group([1])
    if dist.get_rank() == 1:
        dist.broadcast(torch.ones(2), src=1, group=group)


def breaks_limit_is_a_timedelta():
    dist.new_group([0, 1], timeout=30)


def keeps_limit_is_a_timedelta():
    from datetime import timedelta

    dist.new_group([0, 1], timeout=timedelta(seconds=4))


def breaks_dimension_of_several():
    from torch.distributed.device_mesh import init_device_mesh

    mesh = init_device_mesh("cpu", (1, 2), mesh_dim_names=("a", "b"))
    mesh.get_group()


def keeps_dimension_of_several():
    from torch.distributed.device_mesh import init_device_mesh

    mesh = init_device_mesh("cpu", (1, 2), mesh_dim_names=("a", "b"))
    mesh.get_group("b")


def breaks_plain_tensor_to_distribute():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor
    from torch.distributed.tensor import Shard

    mesh = init_device_mesh("cpu", (2,))
    part = DTensor.from_local(torch.ones(2), mesh, [Shard(0)])
    DTensor.from_local(part, mesh, [Shard(0)])


def keeps_plain_tensor_to_distribute():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor
    from torch.distributed.tensor import Shard

    mesh = init_device_mesh("cpu", (2,))
    DTensor.from_local(torch.ones(2), mesh, [Shard(0)])


def breaks_leaf_to_distribute():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard
    from torch.distributed.tensor import distribute_tensor

    mesh = init_device_mesh("cpu", (2,))
    weight = torch.nn.Parameter(torch.ones(4)) * 2
    distribute_tensor(weight, mesh, [Shard(0)])


def keeps_leaf_to_distribute():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard
    from torch.distributed.tensor import distribute_tensor

    mesh = init_device_mesh("cpu", (2,))
    weight = torch.ones(4)
    distribute_tensor(weight, mesh, [Shard(0)])


def breaks_to_a_whole_placement():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Partial
    from torch.distributed.tensor import Shard
    from torch.distributed.tensor import distribute_tensor

    mesh = init_device_mesh("cpu", (2,))
    weight = distribute_tensor(torch.ones(4), mesh, [Shard(0)])
    weight.redistribute(mesh, [Partial()])


def keeps_to_a_whole_placement():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate
    from torch.distributed.tensor import Shard
    from torch.distributed.tensor import distribute_tensor

    mesh = init_device_mesh("cpu", (2,))
    weight = distribute_tensor(torch.ones(4), mesh, [Shard(0)])
    weight.redistribute(mesh, [Replicate()])


def breaks_layers_that_can_be_cut():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel
    from torch.distributed.tensor.parallel import parallelize_module

    model = torch.nn.Sequential(torch.nn.ReLU())
    parallelize_module(model, init_device_mesh("cpu", (2,)), {"0": ColwiseParallel()})


def keeps_layers_that_can_be_cut():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel
    from torch.distributed.tensor.parallel import parallelize_module

    model = torch.nn.Sequential(torch.nn.Linear(2, 2))
    parallelize_module(model, init_device_mesh("cpu", (2,)), {"0": ColwiseParallel()})


def breaks_whole_state_from_one_rank():
    from torch.distributed.checkpoint.state_dict import StateDictOptions
    from torch.distributed.checkpoint.state_dict import set_model_state_dict

    model = torch.nn.Linear(2, 2)
    set_model_state_dict(model, model.state_dict(), options=StateDictOptions(broadcast_from_rank0=True))


def keeps_whole_state_from_one_rank():
    from torch.distributed.checkpoint.state_dict import StateDictOptions
    from torch.distributed.checkpoint.state_dict import set_model_state_dict

    model = torch.nn.Linear(2, 2)
    set_model_state_dict(model, model.state_dict(), options=StateDictOptions())


def breaks_stage_of_the_pipeline():
    from torch.distributed.pipelining import PipelineStage

    PipelineStage(torch.nn.Linear(2, 2), 2, 2, torch.device("cpu"))


def keeps_stage_of_the_pipeline():
    from torch.distributed.pipelining import PipelineStage

    PipelineStage(torch.nn.Linear(2, 2), dist.get_rank(), 2, torch.device("cpu"))


def breaks_a_stage_for_each_rank():
    from torch.distributed.pipelining import PipelineStage

    PipelineStage(torch.nn.Linear(2, 2), 0, 1, torch.device("cpu"))


def keeps_a_stage_for_each_rank():
    from torch.distributed.pipelining import PipelineStage

    PipelineStage(torch.nn.Linear(2, 2), dist.get_rank(), 2, torch.device("cpu"))


class Halves(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)

    def forward(self, x, half):
        return self.first(x) if half == 0 else self.second(x)


def breaks_all_parameters_in_the_loss():
    model = torch.nn.parallel.DistributedDataParallel(Halves())
    for half in range(2):
        model(torch.ones(1, 2), half).sum().backward()


def keeps_all_parameters_in_the_loss():
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))
    model(torch.ones(1, 2)).sum().backward()


def breaks_operation_is_a_reduce_op():
    dist.all_reduce(torch.ones(2), op="sum")


def keeps_operation_is_a_reduce_op():
    dist.all_reduce(torch.ones(2), op=dist.ReduceOp.SUM)


def breaks_sharded_once():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    layer, mesh = torch.nn.Linear(2, 2), init_device_mesh("cpu", (2,))
    fully_shard(layer, mesh=mesh)
    fully_shard(layer, mesh=mesh)


def keeps_sharded_once():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    fully_shard(torch.nn.Linear(2, 2), mesh=init_device_mesh("cpu", (2,)))


def breaks_samples_are_counted():
    from torch.utils.data import Dataset, DistributedSampler

    class Samples(Dataset):
        def __getitem__(self, number):
            return number

    DistributedSampler(Samples())


def keeps_samples_are_counted():
    from torch.utils.data import DistributedSampler

    DistributedSampler(range(8))
