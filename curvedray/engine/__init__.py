"""Independent jobs, mapped over workers: in this process, or on a Ray cluster.

In: a list of jobs, and a function that opens a worker. Out: a result per job, in the jobs' order. It knows nothing of
videos or models: what a job is, and that a job done before is not done again, is the caller's.
"""

from curvedray.engine.engine import HERE, Engine, model_opener
from curvedray.engine.jobs import run_jobs

__all__ = ["HERE", "Engine", "model_opener", "run_jobs"]
