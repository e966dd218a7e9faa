"""One place that maps independent jobs: `run_jobs`. The same job functions run in this process and on Ray.

A job function is made to be repeated. It writes whole files that are named, or marked, by what they are made of, and a
job whose file is there returns it without working again. So a worker that dies loses nothing, and neither does this
process: the same command goes on where it was.

    def open_worker():                  # once per worker: the model is loaded here, and stays
        model = load_model(name)
        return lambda job: worked(job, model)

    results = run_jobs(jobs, open_worker, engine, done=lambda number, result: tick(...))
"""

from collections.abc import Callable, Sequence

from curvedray.engine.engine import HERE, Engine, J, Opener, R


def run_jobs(
    jobs: Sequence[J],
    open_worker: Opener[J, R],
    engine: Engine = HERE,
    *,
    done: Callable[[int, R], None] = lambda number, result: None,
    lost: Callable[[J, str], R] | None = None,
    gpu: bool = False,
) -> list[R]:
    """The result of every job, in order; `done` hears of each when it is finished, with the job's number.

    `open_worker` is called once per worker, and only where there are jobs. On Ray it and the jobs are sent to other
    processes: give functions of modules (with `functools.partial`), and paths that every node can read. `gpu` asks for
    a GPU per worker where the cluster has any.

    An InputError that a job raises stops the run, on every engine: what is wrong with one clip belongs in its result.
    Where a worker dies, or breaks in any other way, its job goes to a fresh one; a job that breaks every worker it is
    given to becomes what `lost(job, reason)` makes of it. Without `lost` the rest is finished and then the run refused.
    """
    if not jobs:
        return []
    if engine.kind == "here":
        return _run_here(jobs, open_worker, done)
    from curvedray.engine.on_ray import run_on_ray

    return run_on_ray(jobs, open_worker, engine, done, lost, gpu)


def _run_here(jobs: Sequence[J], open_worker: Opener[J, R], done: Callable[[int, R], None]) -> list[R]:
    work = open_worker()
    results = []
    for number, job in enumerate(jobs):
        results.append(work(job))
        done(number, results[-1])
    return results
