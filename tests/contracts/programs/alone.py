"""Programs of one process: `breaks_ID` raises because it breaks the contract ID, `keeps_ID` runs."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, SequentialSampler, random_split


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
