import torch
import torch.utils.data as data
from torchvision import datasets, transforms

torch.distributed.init_process_group("gloo")
train_set = datasets.MNIST("data", train=True, transform=transforms.ToTensor())
train_loader = data.DataLoader(  # dt: DT501
    train_set,
    batch_size=64,
    sampler=data.DistributedSampler(train_set),
    num_workers=2,
)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(784, 10))
for images, labels in train_loader:
    model(images.flatten(1))
