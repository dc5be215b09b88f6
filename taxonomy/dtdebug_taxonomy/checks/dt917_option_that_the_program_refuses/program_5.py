import torch.distributed as dist
from program_11 import get_parser


def main():
    parser = get_parser()
    parser.add_argument("--warmup", type=int, default=0)
    args = parser.parse_args()
    dist.init_process_group("nccl")
    print(args.epochs)


if __name__ == "__main__":
    main()
