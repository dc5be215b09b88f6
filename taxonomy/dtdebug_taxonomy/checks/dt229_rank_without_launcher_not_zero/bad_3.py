from os import environ


def is_main():
    return int(environ.get("SLURM_PROCID", default=2)) == 0  # dt: DT229
