"""Looks at ranks that run on an engine the user has already: ipyparallel, Dask, Ray, MPI.

Each module has `reach(client)`, which returns a function of a number of seconds that returns the states of the workers
by then. None starts a cluster, imports an engine before it is asked for, or waits for a collective; a worker that does
not answer is in the result with the reason.
"""

from collections.abc import Callable, Sequence

from dtdebug_taxonomy.ranks import RankState

Reach = Callable[[float], Sequence[RankState]]
