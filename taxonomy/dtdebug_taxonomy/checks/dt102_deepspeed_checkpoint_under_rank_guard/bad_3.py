import os

import deepspeed


def store(engine, path):
    engine.save_checkpoint(path)


def main():
    engine = deepspeed.initialize(model=build(), config="ds.json")[0]
    if int(os.environ["LOCAL_RANK"]) == 0: engine.load_checkpoint("last")  # dt: DT102
    train(engine)
    if int(os.environ["RANK"]) == 0:
        store(engine, "out")  # dt: DT102


if __name__ == "__main__":
    main()
