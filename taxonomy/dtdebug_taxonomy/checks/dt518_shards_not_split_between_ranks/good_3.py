import torch.distributed as dist
import webdataset as wds

dist.init_process_group("nccl")
dataset = wds.DataPipeline(wds.SimpleShardList(urls), wds.split_by_node, wds.split_by_worker)
