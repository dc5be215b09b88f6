/** Looks at ranks as a kernel sends them: eight in which one left out a collective, and as many as one likes. */

import type { Branch, Call, FrameRow, Row, View } from "../../src/view.js";

export const TAKEN = 1_790_000_000;
const GIB = 2 ** 30;

/** Rank 3 saves a checkpoint while the others wait for it in all_reduce #41. */
export function eight(): View {
  const waiting = "cell In[3], line 6, in train";
  const busy = "cell In[3], line 11, in save";
  const rows = Array.from({ length: 8 }, (_, rank): Row => {
    const common = { rank, step: 12, host: "node-a", pid: 4_100 + rank };
    return rank === 3
      ? { ...common, state: "culprit", at: busy, memory: [19.5 * GIB, 23 * GIB] }
      : {
          ...common,
          state: "waits",
          op: "all_reduce",
          seq: 41,
          since: TAKEN - 74 + rank,
          at: waiting,
          memory: [(11 + rank / 4) * GIB, 14 * GIB],
        };
  });
  return {
    v: 1,
    taken: TAKEN,
    seconds: 0.4,
    line: "rank 3 keeps 7 ranks waiting 74 s in all_reduce #41",
    hangs: true,
    cell: { number: 3, line: 22, code: "mp.spawn(train, nprocs=8)", seconds: 81, busy: 0 },
    verdict: {
      kind: "not_arrived",
      culprits: [3],
      waiting: [0, 1, 2, 4, 5, 6, 7],
      group: { name: "0", ranks: [0, 1, 2, 3, 4, 5, 6, 7] },
      collective: { op: "all_reduce", seq: 41 },
      sites: [
        { rank: 0, file: "cell In[3]", line: 6, function: "train" },
        { rank: 3, file: "cell In[3]", line: 11, function: "save" },
      ],
      confidence: 0.93,
      summary: "Rank 3 never entered all_reduce #41: it writes a checkpoint; ranks 0-2,4-7 wait for it.",
      evidence: [
        "Rank 3 completed all_reduce #40 and has begun nothing since.",
        "7 of 8 ranks have been in all_reduce #41 for 67 to 74 s.",
      ],
      alternatives: [
        {
          kind: "fabric",
          culprits: [],
          because: "The record of rank 3 may have been cut off before #41.",
          refute: "look at its stack, which is in torch.save.",
        },
      ],
    },
    rows,
    tree: tree(waiting, busy),
    timeline: { group: "0", parted: 41, lanes: lanes() },
    devices: [
      {
        index: 0,
        name: "NVIDIA H100 80GB HBM3",
        total: 80 * GIB,
        used: 71.4 * GIB,
        utilization: 100,
        users: [
          ["rank 0", 33 * GIB],
          ["rank 1", 26.5 * GIB],
          ["pid 77", 9 * GIB],
        ],
      },
      {
        index: 1,
        name: "NVIDIA H100 80GB HBM3",
        total: 80 * GIB,
        used: 23.2 * GIB,
        utilization: 0,
        users: [["rank 3", 23 * GIB]],
      },
    ],
    notes: ["Rank 5 answered after 1.8 s; its stack is of that moment."],
  };
}

function frame(at: string, code = "", own = false): FrameRow {
  return { at, code, own };
}

function tree(waiting: string, busy: string): Branch {
  return {
    ranks: "0-7",
    count: 8,
    frames: [
      frame("multiprocessing/spawn.py:122 spawn_main"),
      frame("torch/multiprocessing/spawn.py:90 _wrap"),
      frame("cell In[3], line 3, in train", "model = DDP(Net())", true),
    ],
    branches: [
      {
        ranks: "0-2,4-7",
        count: 7,
        frames: [
          frame(waiting, "dist.all_reduce(loss)", true),
          frame("torch/distributed/c10d_logger.py:83 wrapper"),
          frame("torch/distributed/distributed_c10d.py:3007 all_reduce", "work.wait()"),
        ],
      },
      {
        ranks: "3",
        count: 1,
        culprit: true,
        frames: [
          frame("cell In[3], line 8, in train", "save(model)", true),
          frame(busy, "torch.save(model.state_dict(), path)", true),
          frame("torch/serialization.py:971 save"),
          frame("torch/serialization.py:1268 _save"),
        ],
      },
    ],
  };
}

function lanes(): NonNullable<NonNullable<View["timeline"]>["lanes"]> {
  const done = Array.from(
    { length: 15 },
    (_, i): Call => ({ seq: 26 + i, op: i % 5 === 4 ? "broadcast" : "all_reduce", begun: TAKEN - 200 + i }),
  );
  const at = "cell In[3], line 6, in train";
  return [
    { ranks: "0-2,4-7", count: 7, calls: [...done, { seq: 41, op: "all_reduce", open: true, begun: TAKEN - 74, at }] },
    { ranks: "3", count: 1, culprit: true, calls: done },
  ];
}

/** Ranks of which few are not as the others; `moment` moves what changes from look to look. */
export function many(count: number, moment = 0, culprits: readonly number[] = [Math.floor(count * 0.7)]): View {
  const rows = Array.from({ length: count }, (_, rank): Row => {
    const host = `node-${Math.floor(rank / 8)}`;
    const common = { rank, step: 900 + moment, host, pid: 10_000 + rank, memory: [40 * GIB, 60 * GIB] as const };
    if (culprits.includes(rank)) {
      return { ...common, state: "culprit", at: "train.py:88 load_batch" };
    }
    if (rank % 97 === 13) {
      return { ...common, state: rank % 2 ? "silent" : "gone" };
    }
    return (rank + moment) % 29 === 3
      ? { ...common, state: "runs", at: "train.py:70 forward" }
      : { ...common, state: "waits", op: "all_reduce", seq: 41, since: TAKEN - 74, at: "train.py:91 train" };
  });
  const named = culprits.join(", ");
  return { v: 1, taken: TAKEN + moment, hangs: true, line: `rank ${named} is waited for in all_reduce #41`, rows };
}
