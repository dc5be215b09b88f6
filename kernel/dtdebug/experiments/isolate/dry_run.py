"""Shows the runs and the cost of a search before the first run."""

from __future__ import annotations

from dtdebug.experiments.isolate.claims import factor_name
from dtdebug.experiments.isolate.job_command import JobCommand
from dtdebug.experiments.isolate.render import count_of_runs, duration
from dtdebug.experiments.isolate.run_types import Choices, Run
from dtdebug.experiments.isolate.session import SearchRequest


def plan(job: JobCommand, asked: SearchRequest, choices: Choices, first: Run | None) -> str:
    """Return the planned runs, cheapest first, and their cost."""
    lines = ["dtdebug isolate: would run, in copies of the working directory, one after another:"]
    kind = {"fails": "if it does not fail", "slow": "if it is not slow", "differs": "if it does not differ"}
    lines.append(f"  the job as it is; again, up to 3 times, {kind[choices.kind]}")
    factors, variables = asked.factors, {**asked.variables, **asked.versions}
    if choices.kind == "differs":
        lines.append("  not with fewer ranks, which have other values")
    else:
        if job.agents > 1:
            lines.append(f"  with all ranks under one agent of torchrun, not under {job.agents}: 1 run")
        if job.at >= 0 and job.ranks is not None and job.ranks > 1:
            most = max(1, (job.ranks - 1).bit_length())
            lines.append(f"  with fewer ranks: 1 first, then by halves; up to {count_of_runs(most)}")
        else:
            lines.append("  not with fewer ranks: the command does not say how many it starts")
    known = [f for f in factors if first is None or all(use in first.saw for use in f.uses)]
    known = [f for f in known if first is None or not any(use in first.saw for use in f.unless)]
    if_used = " (each where the first run shows that it is used)" if first is None else ""
    alone = [f for f in known if f.stage == "communication"]
    parts = [f for f in known if f.stage == "part" and not f.within]
    process = [f for f in known if f.stage == "process"]
    data = [f for f in known if f.stage == "workload"]
    lines += [f"  {f.title} {f.to}: 1 run{if_used}" for f in alone]
    if parts or variables:
        names = [f"{f.title} {f.to}" for f in parts] + [f"{name} {to}" for name, to in variables.items()]
        lines.append(f"  all at once, then by halves if it then does not fail{if_used}: {', '.join(names)}")
    narrow = [f for f in known if f.within]
    lines += [f"  {f.title} {f.to}: 1 run, if it is {factor_name(f.within)}{if_used}" for f in narrow]
    lines += [f"  {f.title} {f.to}: 1 run, if one rank fails too and none of these is it{if_used}" for f in process]
    lines += [f"  {f.title} {f.to}: 1 run, if none of these is it{if_used}" for f in data]
    cost = f"; the first took {duration(first.seconds)}" if first is not None else ""
    lines.append(
        f"  each run takes 3 times as long as the failing one at most, and 20 s{cost}; all stay within --budget"
    )
    return "\n".join(dict.fromkeys(lines)) + "\n"
