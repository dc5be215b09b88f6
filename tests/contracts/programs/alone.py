"""Programs of one process: `breaks_ID` raises because it breaks the contract ID, `keeps_ID` runs."""

import tempfile
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, SequentialSampler, random_split


class Stream(torch.utils.data.IterableDataset):
    def __iter__(self):
        return iter(range(8))


def breaks_checkpoint_of_a_wrapped_model():
    state = {"module.weight": torch.ones(2, 2), "module.bias": torch.ones(2)}
    model = nn.Linear(2, 2)
    model.load_state_dict(state)


def keeps_checkpoint_of_a_wrapped_model():
    state = {"weight": torch.ones(2, 2), "bias": torch.ones(2)}
    model = nn.Linear(2, 2)
    model.load_state_dict(state)


def breaks_some_parameters():
    torch.optim.SGD([], lr=0.1)


def keeps_some_parameters():
    torch.optim.SGD(nn.Linear(2, 2).parameters(), lr=0.1)


def breaks_steps_of_the_cycle():
    schedule = torch.optim.lr_scheduler.OneCycleLR(torch.optim.SGD(nn.Linear(2, 2).parameters()), 0.1, total_steps=2)
    for _ in range(4):
        schedule.step()


def keeps_steps_of_the_cycle():
    schedule = torch.optim.lr_scheduler.OneCycleLR(torch.optim.SGD(nn.Linear(2, 2).parameters()), 0.1, total_steps=5)
    for _ in range(4):
        schedule.step()


def breaks_loss_is_a_scalar():
    loss = nn.Linear(2, 2)(torch.ones(3, 2))
    loss.backward()


def keeps_loss_is_a_scalar():
    loss = nn.Linear(2, 2)(torch.ones(3, 2)).sum()
    loss.backward()


def breaks_sampler_or_shuffle():
    data = range(8)
    DataLoader(data, 2, shuffle=True, sampler=SequentialSampler(data))


def keeps_sampler_or_shuffle():
    data = range(8)
    DataLoader(data, 2, shuffle=False, sampler=SequentialSampler(data))


def breaks_batch_size_is_positive():
    DataLoader(range(8), batch_size=3 // 4)


def keeps_batch_size_is_positive():
    DataLoader(range(8), batch_size=5 // 4)


def breaks_batch_size_is_whole():
    DataLoader(range(8), batch_size=2.0)


def keeps_batch_size_is_whole():
    DataLoader(range(8), batch_size=2)


def breaks_prefetch_needs_workers():
    DataLoader(range(8), batch_size=2, prefetch_factor=4)


def keeps_prefetch_needs_workers():
    DataLoader(range(8), batch_size=2, num_workers=1, prefetch_factor=4)


def breaks_persistent_workers_need_workers():
    DataLoader(range(8), batch_size=2, persistent_workers=True)


def keeps_persistent_workers_need_workers():
    DataLoader(range(8), batch_size=2, persistent_workers=True, num_workers=1)


def breaks_batch_sampler_alone():
    batches = BatchSampler(RandomSampler(range(8)), 2, drop_last=False)
    DataLoader(range(8), batch_size=4, batch_sampler=batches)


def keeps_batch_sampler_alone():
    batches = BatchSampler(RandomSampler(range(8)), 2, drop_last=False)
    DataLoader(range(8), batch_sampler=batches)


def breaks_samples_of_one_shape():
    samples = [torch.ones(3), torch.ones(4)]
    torch.stack(samples)


def keeps_samples_of_one_shape():
    samples = [torch.ones(3), torch.ones(3)]
    torch.stack(samples)


def breaks_split_adds_up():
    data = [1, 2, 3, 4]
    random_split(data, [2, 3])


def keeps_split_adds_up():
    data = [1, 2, 3, 4]
    random_split(data, [1, 3])


def breaks_labels_below_the_number_of_classes():
    F.cross_entropy(torch.ones(3, 4), torch.tensor([0, 1, 4]))


def keeps_labels_below_the_number_of_classes():
    F.cross_entropy(torch.ones(3, 4), torch.tensor([0, 1, 3]))


def breaks_labels_not_negative():
    labels = torch.tensor([0, 1, -1])
    F.cross_entropy(torch.ones(3, 4), labels)


def keeps_labels_not_negative():
    labels = torch.tensor([0, 1, -100])
    F.cross_entropy(torch.ones(3, 4), labels)


def breaks_one_label_per_sample():
    logits, labels = torch.ones(3, 4), torch.tensor([0, 1])
    F.nll_loss(logits, labels)


def keeps_one_label_per_sample():
    logits, labels = torch.ones(2, 4), torch.tensor([0, 1])
    F.nll_loss(logits, labels)


def breaks_labels_are_indices():
    logits, labels = torch.ones(2, 4), torch.tensor([0.0, 1.0])
    nn.CrossEntropyLoss()(logits, labels)


def keeps_labels_are_indices():
    logits, labels = torch.ones(2, 4), torch.tensor([0, 1])
    nn.CrossEntropyLoss()(logits, labels)


def breaks_labels_without_a_dimension_of_classes():
    logits, labels = torch.ones(2, 4), torch.tensor([[0], [1]])
    F.cross_entropy(logits, labels)


def keeps_labels_without_a_dimension_of_classes():
    logits, labels = torch.ones(2, 4), torch.tensor([0, 1])
    F.cross_entropy(logits, labels)


def breaks_index_within_the_embedding():
    table, tokens = torch.ones(5, 2), torch.tensor([1, 5])
    F.embedding(tokens, table)


def keeps_index_within_the_embedding():
    table, tokens = torch.ones(6, 2), torch.tensor([1, 5])
    F.embedding(tokens, table)


def breaks_index_within_the_embedding_layer():
    layer, tokens = nn.Embedding(5, 2), torch.tensor([1, 5])
    layer(tokens)


def keeps_index_within_the_embedding_layer():
    layer, tokens = nn.Embedding(6, 2), torch.tensor([1, 5])
    layer(tokens)


def breaks_index_not_negative():
    layer, tokens = nn.Embedding(5, 2), torch.tensor([1, -1])
    layer(tokens)


def keeps_index_not_negative():
    layer, tokens = nn.Embedding(5, 2), torch.tensor([1, 0])
    layer(tokens)


def breaks_index_is_whole():
    layer, tokens = nn.Embedding(5, 2), torch.tensor([1.0, 2.0])
    layer(tokens)


def keeps_index_is_whole():
    layer, tokens = nn.Embedding(5, 2), torch.tensor([1, 2])
    layer(tokens)


def breaks_features_fit_the_weight():
    x, weight = torch.ones(2, 3), torch.ones(5, 4)
    F.linear(x, weight)


def keeps_features_fit_the_weight():
    x, weight = torch.ones(2, 4), torch.ones(5, 4)
    F.linear(x, weight)


def breaks_features_fit_the_layer():
    head, x = nn.Linear(4, 2), torch.ones(2, 3)
    head(x)


def keeps_features_fit_the_layer():
    head, x = nn.Linear(3, 2), torch.ones(2, 3)
    head(x)


def breaks_linear_one_dtype():
    x, weight = torch.ones(2, 4, dtype=torch.float64), torch.ones(5, 4)
    F.linear(x, weight)


def keeps_linear_one_dtype():
    x, weight = torch.ones(2, 4), torch.ones(5, 4)
    F.linear(x, weight)


def breaks_inner_dimensions_agree():
    a, b = torch.ones(2, 3), torch.ones(2, 3)
    a @ b


def keeps_inner_dimensions_agree():
    a, b = torch.ones(2, 3), torch.ones(3, 2)
    torch.matmul(a, b)


def breaks_matmul_one_dtype():
    a, b = torch.ones(2, 3), torch.ones(3, 2, dtype=torch.float64)
    torch.mm(a, b)


def keeps_matmul_one_dtype():
    a, b = torch.ones(2, 3), torch.ones(3, 2)
    torch.mm(a, b)


def breaks_shape_holds_all_elements():
    x = torch.ones(2, 5)
    x.view(3, 3)


def keeps_shape_holds_all_elements():
    x = torch.ones(2, 5)
    x.view(5, 2)


def breaks_shape_divides_elements():
    x = torch.ones(2, 5)
    x.reshape(-1, 3)


def keeps_shape_divides_elements():
    x = torch.ones(2, 5)
    x.reshape(-1, 5)


def breaks_view_needs_fitting_strides():
    x = torch.ones(2, 5).T
    x.view(10)


def keeps_view_needs_fitting_strides():
    x = torch.ones(2, 5)
    x.view(10)


def breaks_cat_same_number_of_dimensions():
    parts = [torch.ones(2, 3), torch.ones(3)]
    torch.cat(parts)


def keeps_cat_same_number_of_dimensions():
    parts = [torch.ones(2, 3), torch.ones(1, 3)]
    torch.cat(parts)


def breaks_cat_same_shape_but_one():
    parts = [torch.ones(2, 3), torch.ones(2, 4)]
    torch.cat(parts)


def keeps_cat_same_shape_but_one():
    parts = [torch.ones(2, 3), torch.ones(2, 4)]
    torch.cat(parts, dim=1)


def breaks_split_sizes_add_up():
    x = torch.ones(10)
    torch.split(x, [4, 4])


def keeps_split_sizes_add_up():
    x = torch.ones(10)
    torch.split(x, [4, 6])


def breaks_heads_divide_the_width():
    nn.MultiheadAttention(10, 3)


def keeps_heads_divide_the_width():
    nn.MultiheadAttention(12, 3)


def breaks_groups_divide_the_channels():
    nn.Conv2d(4, 6, 3, groups=3)


def keeps_groups_divide_the_channels():
    nn.Conv2d(6, 6, 3, groups=3)


def breaks_channels_fit_the_kernel():
    x, kernel = torch.ones(1, 3, 8, 8), torch.ones(4, 2, 3, 3)
    F.conv2d(x, kernel)


def keeps_channels_fit_the_kernel():
    x, kernel = torch.ones(1, 2, 8, 8), torch.ones(4, 2, 3, 3)
    F.conv2d(x, kernel)


def breaks_channels_fit_the_layer():
    layer, x = nn.Conv2d(3, 4, 3), torch.ones(1, 1, 8, 8)
    layer(x)


def keeps_channels_fit_the_layer():
    layer, x = nn.Conv2d(1, 4, 3), torch.ones(1, 1, 8, 8)
    layer(x)


def breaks_norm_divides_the_channels():
    nn.GroupNorm(3, 8)


def keeps_norm_divides_the_channels():
    nn.GroupNorm(4, 8)


def breaks_loss_one_shape():
    p, y = torch.rand(4, 1), torch.rand(4)
    F.binary_cross_entropy(p, y)


def keeps_loss_one_shape():
    p, y = torch.rand(4), torch.rand(4)
    F.binary_cross_entropy(p, y)


def breaks_accelerate_precision():
    from accelerate import Accelerator

    Accelerator(mixed_precision="float16")


def breaks_lightning_some_device():
    import lightning

    lightning.Trainer(accelerator="cpu", devices=0)


def breaks_split_batches_divide():
    from accelerate.data_loader import prepare_data_loader

    loader = DataLoader(range(9), batch_size=3)
    prepare_data_loader(loader, num_processes=2, process_index=0, split_batches=True)


def keeps_split_batches_divide():
    from accelerate.data_loader import prepare_data_loader

    loader = DataLoader(range(8), batch_size=4)
    prepare_data_loader(loader, num_processes=2, process_index=0, split_batches=True)


def breaks_workers_not_negative():
    DataLoader(range(8), num_workers=-1)


def keeps_workers_not_negative():
    DataLoader(range(8), num_workers=0)


def breaks_drop_last_needs_batches():
    DataLoader(range(8), batch_size=None, drop_last=True)


def keeps_drop_last_needs_batches():
    DataLoader(range(8), batch_size=None, drop_last=False)


def breaks_start_method_needs_workers():
    DataLoader(range(8), multiprocessing_context="spawn")


def keeps_start_method_needs_workers():
    DataLoader(range(8), num_workers=1, multiprocessing_context="spawn")


def breaks_stream_takes_no_shuffle():
    DataLoader(Stream(), shuffle=True)


def keeps_stream_takes_no_shuffle():
    DataLoader(Stream(), shuffle=False)


def breaks_stream_takes_no_sampler():
    DataLoader(Stream(), sampler=SequentialSampler(range(8)))


def keeps_stream_takes_no_sampler():
    DataLoader(Stream(), sampler=None)


def breaks_some_samples():
    rows = []
    DataLoader(rows, shuffle=True)


def keeps_some_samples():
    rows = [1]
    DataLoader(rows, shuffle=True)


def breaks_tensors_of_one_length():
    from torch.utils.data import TensorDataset

    TensorDataset(torch.ones(4, 2), torch.ones(3))


def keeps_tensors_of_one_length():
    from torch.utils.data import TensorDataset

    TensorDataset(torch.ones(4, 2), torch.ones(4))


def breaks_some_data_sets():
    from torch.utils.data import ConcatDataset

    parts = []
    ConcatDataset(parts)


def keeps_some_data_sets():
    from torch.utils.data import ConcatDataset

    parts = [range(3)]
    ConcatDataset(parts)


def breaks_draws_are_positive():
    from torch.utils.data import WeightedRandomSampler

    many = 1 // 2
    WeightedRandomSampler([0.5, 0.5], many)


def keeps_draws_are_positive():
    from torch.utils.data import WeightedRandomSampler

    many = 2
    WeightedRandomSampler([0.5, 0.5], many)


def breaks_index_as_deep_as_the_input():
    picked = torch.tensor([0, 1])
    logits = torch.ones(2, 3)
    logits.gather(1, picked)


def keeps_index_as_deep_as_the_input():
    picked = torch.tensor([[0], [1]])
    logits = torch.ones(2, 3)
    logits.gather(1, picked)


def breaks_gather_index_is_whole():
    picked = torch.zeros(2, 1)
    logits = torch.ones(2, 3)
    torch.gather(logits, 1, picked)


def keeps_gather_index_is_whole():
    picked = torch.zeros(2, 1, dtype=torch.long)
    logits = torch.ones(2, 3)
    torch.gather(logits, 1, picked)


def breaks_gather_index_within_the_input():
    picked = torch.tensor([[3], [1]])
    logits = torch.ones(2, 3)
    torch.gather(logits, 1, picked)


def keeps_gather_index_within_the_input():
    picked = torch.tensor([[2], [1]])
    logits = torch.ones(2, 3)
    torch.gather(logits, 1, picked)


def breaks_classes_of_one_hot():
    labels = torch.tensor([0, 3])
    F.one_hot(labels, 3)


def keeps_classes_of_one_hot():
    labels = torch.tensor([0, 2])
    F.one_hot(labels, 3)


def breaks_one_hot_of_whole_numbers():
    labels = torch.tensor([0, 2], dtype=torch.int32)
    F.one_hot(labels, 3)


def keeps_one_hot_of_whole_numbers():
    labels = torch.tensor([0, 2])
    F.one_hot(labels, 3)


def breaks_targets_are_floats():
    labels = torch.tensor([0, 1])
    F.binary_cross_entropy_with_logits(torch.ones(2), labels)


def keeps_targets_are_floats():
    labels = torch.tensor([0.0, 1.0])
    F.binary_cross_entropy_with_logits(torch.ones(2), labels)


def breaks_one_element_to_read():
    losses = torch.ones(2)
    losses.item()


def keeps_one_element_to_read():
    losses = torch.ones(1)
    losses.item()


def breaks_chunks_are_positive():
    torch.ones(4).chunk(1 // 2)


def keeps_chunks_are_positive():
    torch.ones(4).chunk(2)


def breaks_some_tensors():
    parts = []
    torch.cat(parts)


def keeps_some_tensors():
    parts = [torch.ones(1)]
    torch.cat(parts)


def breaks_several_values_per_channel():
    layer = nn.BatchNorm1d(3)
    layer(torch.ones(1, 3))


def keeps_several_values_per_channel():
    layer = nn.BatchNorm1d(3)
    layer(torch.ones(2, 3))


def breaks_images_have_four_dimensions():
    layer = nn.BatchNorm2d(3)
    layer(torch.ones(3, 8, 8))


def keeps_images_have_four_dimensions():
    layer = nn.BatchNorm2d(3)
    layer(torch.ones(1, 3, 8, 8))


def breaks_steps_of_the_cycle_are_given():
    from torch.optim import lr_scheduler

    lr_scheduler.OneCycleLR(sgd(), 0.1, epochs=3)


def keeps_steps_of_the_cycle_are_given():
    from torch.optim import lr_scheduler

    lr_scheduler.OneCycleLR(sgd(), 0.1, epochs=3, steps_per_epoch=2)


def breaks_steps_per_epoch_are_positive():
    from torch.optim import lr_scheduler

    lr_scheduler.OneCycleLR(sgd(), 0.1, epochs=3, steps_per_epoch=1 // 2)


def keeps_steps_per_epoch_are_positive():
    from torch.optim import lr_scheduler

    lr_scheduler.OneCycleLR(sgd(), 0.1, epochs=3, steps_per_epoch=1)


def breaks_cycle_steps_are_positive():
    from torch.optim import lr_scheduler

    lr_scheduler.OneCycleLR(sgd(), 0.1, total_steps=0)


def keeps_cycle_steps_are_positive():
    from torch.optim import lr_scheduler

    lr_scheduler.OneCycleLR(sgd(), 0.1, total_steps=10)


def breaks_way_of_the_cycle():
    from torch.optim import lr_scheduler

    lr_scheduler.OneCycleLR(sgd(), 0.1, total_steps=9, anneal_strategy="cosine")


def keeps_way_of_the_cycle():
    from torch.optim import lr_scheduler

    lr_scheduler.OneCycleLR(sgd(), 0.1, total_steps=9, anneal_strategy="cos")


def breaks_restart_after_a_step():
    from torch.optim import lr_scheduler

    lr_scheduler.CosineAnnealingWarmRestarts(sgd(), 1 // 2)


def keeps_restart_after_a_step():
    from torch.optim import lr_scheduler

    lr_scheduler.CosineAnnealingWarmRestarts(sgd(), 4)


def breaks_milestones_between_schedules():
    from torch.optim import lr_scheduler

    optimizer = sgd()
    parts = [lr_scheduler.LinearLR(optimizer), lr_scheduler.StepLR(optimizer, 3)]
    lr_scheduler.SequentialLR(optimizer, parts, [5, 8])


def keeps_milestones_between_schedules():
    from torch.optim import lr_scheduler

    optimizer = sgd()
    parts = [lr_scheduler.LinearLR(optimizer), lr_scheduler.StepLR(optimizer, 3)]
    lr_scheduler.SequentialLR(optimizer, parts, [5])


def breaks_schedule_of_an_optimizer():
    from torch.optim import lr_scheduler

    lr_scheduler.StepLR([sgd()], 3)


def keeps_schedule_of_an_optimizer():
    from torch.optim import lr_scheduler

    lr_scheduler.StepLR(sgd(), 3)


def breaks_schedule_that_goes_on():
    from torch.optim import lr_scheduler

    lr_scheduler.StepLR(sgd(), 3, last_epoch=4)


def keeps_schedule_that_goes_on():
    from torch.optim import lr_scheduler

    lr_scheduler.StepLR(sgd(), 3, last_epoch=-1)


def breaks_as_many_parameter_groups():
    saved = sgd().state_dict()
    model = nn.Linear(2, 2)
    torch.optim.SGD([{"params": [model.weight]}, {"params": [model.bias]}], 0.1).load_state_dict(saved)


def keeps_as_many_parameter_groups():
    saved = sgd().state_dict()
    sgd().load_state_dict(saved)


def breaks_groups_of_one_size():
    saved = sgd().state_dict()
    torch.optim.SGD([nn.Linear(2, 2).weight], 0.1).load_state_dict(saved)


def keeps_groups_of_one_size():
    saved = sgd().state_dict()
    sgd().load_state_dict(saved)


def breaks_parameters_in_a_list():
    torch.optim.SGD(nn.Linear(2, 2).weight, 0.1)


def keeps_parameters_in_a_list():
    torch.optim.SGD([nn.Linear(2, 2).weight], 0.1)


def breaks_each_parameter_once():
    model = nn.Linear(2, 2)
    torch.optim.SGD([{"params": model.parameters()}, {"params": [model.bias]}], 0.1)


def keeps_each_parameter_once():
    model = nn.Linear(2, 2)
    torch.optim.SGD([{"params": [model.weight]}, {"params": [model.bias]}], 0.1)


def breaks_leaves_only():
    weight = nn.Parameter(torch.ones(2)) * 2
    torch.optim.SGD([weight], 0.1)


def keeps_leaves_only():
    weight = nn.Parameter(torch.ones(2))
    torch.optim.SGD([weight], 0.1)


def breaks_unscaled_once():
    scaler, optimizer = scaled()
    scaler.unscale_(optimizer)
    scaler.unscale_(optimizer)


def keeps_unscaled_once():
    scaler, optimizer = scaled()
    scaler.unscale_(optimizer)


def breaks_unscaled_before_the_step():
    scaler, optimizer = scaled()
    scaler.step(optimizer)
    scaler.unscale_(optimizer)


def keeps_unscaled_before_the_step():
    scaler, optimizer = scaled()
    scaler.unscale_(optimizer)


def breaks_scaled_step_once():
    scaler, optimizer = scaled()
    scaler.step(optimizer)
    scaler.step(optimizer)


def keeps_scaled_step_once():
    scaler, optimizer = scaled()
    scaler.step(optimizer)


def breaks_one_number_of_micro_steps():
    from accelerate.utils import GradientAccumulationPlugin

    accelerator(gradient_accumulation_steps=2, gradient_accumulation_plugin=GradientAccumulationPlugin(2))


def keeps_one_number_of_micro_steps():
    accelerator(gradient_accumulation_steps=1)


def breaks_place_for_each_object():
    accelerator().prepare(nn.Linear(2, 2), sgd(), device_placement=[True])


def keeps_place_for_each_object():
    accelerator().prepare(nn.Linear(2, 2), sgd(), device_placement=[True, True])


def breaks_folder_to_load():
    accelerator().load_state("/nowhere/checkpoint")


def breaks_folder_or_automatic_name():
    accelerator().load_state()


def breaks_objects_with_a_state():
    accelerator().register_for_checkpointing(3)


def keeps_objects_with_a_state():
    accelerator().register_for_checkpointing(nn.Linear(2, 2))


def breaks_lightning_strategy_exists():
    from lightning import Trainer

    Trainer(strategy="ddpp", accelerator="cpu")


def keeps_lightning_strategy_exists():
    from lightning import Trainer

    Trainer(strategy="auto", accelerator="cpu")


def breaks_lightning_some_host():
    from lightning import Trainer

    Trainer(num_nodes=0, accelerator="cpu")


def keeps_lightning_some_host():
    from lightning import Trainer

    Trainer(num_nodes=1, accelerator="cpu")


def breaks_lightning_device_is_there():
    from lightning import Trainer

    Trainer(accelerator="cuda")


def keeps_lightning_device_is_there():
    from lightning import Trainer

    Trainer(accelerator="cpu")


def breaks_lightning_a_training_step():
    runner, model = trainer(), without("training_step")
    runner.fit(model, DataLoader(torch.ones(2, 2)))


def keeps_lightning_a_training_step():
    runner, model = trainer(), without("")
    runner.fit(model, DataLoader(torch.ones(2, 2)))


def breaks_lightning_an_optimizer():
    runner, model = trainer(), without("configure_optimizers")
    runner.fit(model, DataLoader(torch.ones(2, 2)))


def keeps_lightning_an_optimizer():
    runner, model = trainer(), without("")
    runner.fit(model, DataLoader(torch.ones(2, 2)))


def breaks_lightning_no_clipping_by_hand():
    runner, model = trainer(gradient_clip_val=1.0), by_hand()
    runner.fit(model, DataLoader(torch.ones(2, 2)))


def keeps_lightning_no_clipping_by_hand():
    runner, model = trainer(), by_hand()
    runner.fit(model, DataLoader(torch.ones(2, 2)))


def breaks_lightning_no_accumulation_by_hand():
    runner, model = trainer(accumulate_grad_batches=2), by_hand()
    runner.fit(model, DataLoader(torch.ones(2, 2)))


def keeps_lightning_no_accumulation_by_hand():
    runner, model = trainer(), by_hand()
    runner.fit(model, DataLoader(torch.ones(2, 2)))


def breaks_lightning_loader_or_module():
    runner, model = trainer(), without("")
    runner.fit(model, DataLoader(torch.ones(2, 2)), datamodule=lightning().LightningDataModule())


def keeps_lightning_loader_or_module():
    runner, model = trainer(), without("")
    runner.fit(model, DataLoader(torch.ones(2, 2)))


def lightning():
    import lightning

    return lightning


def without(name):
    class Model(lightning().LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 2)

        def training_step(self, batch, number):
            return self.layer(batch).sum()

        def configure_optimizers(self):
            return sgd()

    if name:
        delattr(Model, name)
    return Model()


def by_hand():
    model = without("")
    model.automatic_optimization = False
    return model


def trainer(**options):
    quiet = dict.fromkeys(("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False)
    return lightning().Trainer(accelerator="cpu", max_epochs=1, **quiet, **options)


def sgd():
    return torch.optim.SGD(nn.Linear(2, 2).parameters(), 0.1)


def scaled():
    model = nn.Linear(2, 2)
    scaler, optimizer = torch.amp.GradScaler("cpu"), torch.optim.SGD(model.parameters(), 0.1)
    scaler.scale(model(torch.ones(1, 2)).sum()).backward()
    return scaler, optimizer


def accelerator(**options):
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState, GradientState, PartialState

    for state in (AcceleratorState, GradientState, PartialState):
        state._reset_state()
    return Accelerator(cpu=True, **options)


def breaks_devices_of_this_process():
    file = Path(tempfile.mkdtemp()) / "weights.pt"
    torch.save({"weight": torch.ones(1)}, file)
    device = "cuda:0"
    torch.load(file, map_location=device)


def keeps_devices_of_this_process():
    file = Path(tempfile.mkdtemp()) / "weights.pt"
    torch.save({"weight": torch.ones(1)}, file)
    torch.load(file, map_location="cpu")


class Progress:
    step = 3


def breaks_file_of_weights_alone():
    file = Path(tempfile.mkdtemp()) / "progress.pt"
    torch.save({"progress": Progress()}, file)
    torch.load(file)


def keeps_file_of_weights_alone():
    file = Path(tempfile.mkdtemp()) / "progress.pt"
    torch.save({"progress": torch.ones(1)}, file)
    torch.load(file)


def breaks_scaled_before_the_step():
    optimizer = torch.optim.SGD(nn.Linear(2, 2).parameters())
    scaler = torch.amp.GradScaler("cpu")
    scaler.step(optimizer)


def keeps_scaled_before_the_step():
    scaler, optimizer = scaled()
    scaler.step(optimizer)


def breaks_one_function_per_group():
    layer = nn.Linear(2, 2)
    optimizer = torch.optim.SGD([{"params": [layer.weight]}, {"params": [layer.bias]}])
    functions = [lambda epoch: 1.0]
    torch.optim.lr_scheduler.LambdaLR(optimizer, functions)


def keeps_one_function_per_group():
    optimizer = torch.optim.SGD(nn.Linear(2, 2).parameters())
    functions = [lambda epoch: 1.0]
    torch.optim.lr_scheduler.LambdaLR(optimizer, functions)


def breaks_loss_of_trained_parameters():
    model = nn.Linear(2, 2)
    with torch.no_grad():
        outputs = model(torch.ones(1, 2))
    loss = outputs.sum()
    loss.backward()


def keeps_loss_of_trained_parameters():
    loss = nn.Linear(2, 2)(torch.ones(1, 2)).sum()
    loss.backward()
