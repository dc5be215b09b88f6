import torch.distributed as dist

dist.init_process_group("gloo")
request = [None]
while True:
    if dist.get_rank() == 0:
        text = input("prompt: ").strip()
        if not text:
            continue
        request = [text]
    dist.broadcast_object_list(request, src=0)
    print(request)
