import os
import torch

os.environ["CUDA_VISIBLE_DEVICES"] = "2"  # dt: DT211
model = torch.nn.Linear(2, 2).cuda()
