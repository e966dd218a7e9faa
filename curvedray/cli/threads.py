"""How many processor threads a command takes."""

import os

from curvedray.errors import InputError

MOST_THREADS = 1024


def set_threads(threads: int | None, *, small: bool) -> None:
    """What `--threads` says, else what OMP_NUM_THREADS says, else one for a small model, else torch's own choice.

    The embedded model's operations are so small that two threads wait for each other more than they work: on a busy
    machine of two cores, 81 s with two threads and 9 s with one, for the same bytes.
    """
    import torch

    if threads is not None:
        if not 1 <= threads <= MOST_THREADS:
            raise InputError("--threads", f"1 to {MOST_THREADS}", threads)
        torch.set_num_threads(threads)
    elif small and "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(1)
