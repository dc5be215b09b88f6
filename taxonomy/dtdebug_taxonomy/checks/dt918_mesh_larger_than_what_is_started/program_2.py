import argparse

from torch.distributed.device_mesh import init_device_mesh


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dp", type=int, default=2)
    parser.add_argument("--tensor-parallel", dest="tp", type=int, default=2)
    args = parser.parse_args()
    shape = (args.dp, args.tp)
    init_device_mesh("cuda", shape, mesh_dim_names=("dp", "tp"))


main()
