"""The worker: one process that owns the model and makes takes, one by one, as the queue hands them over.

It is nice to everything else, computes in one thread (two wait for each other more than they work), does not hear
Ctrl-C, and ends when the studio does, however that ends: its channel breaks then.
"""

import logging
import os
import signal
import traceback
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

from curvedray.app.answering import Refused
from curvedray.app.guard import by_their_names
from curvedray.app.worker_channel import Cancelled, Channel
from curvedray.errors import InputError
from curvedray.extras import missing_extra

log = logging.getLogger(__name__)
NICENESS = 5  # its pages come first; more would starve it on a busy machine


def work(connection: Connection, folder: Path) -> None:
    """Load the model, then make takes for ever. What a user got wrong fails one take, and so does a bug."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(OSError, AttributeError):  # Windows has none
        os.nice(NICENESS)
    channel = Channel(connection)
    import torch

    torch.set_num_threads(1)
    from curvedray.app.filming import film_take
    from curvedray.app.footage import score_take, transfer_take
    from curvedray.app.worker_models import WorkerModels

    models = WorkerModels(folder, channel)
    making = {"film": film_take, "score": score_take, "transfer": transfer_take}
    try:
        models.warm_up()
    except Exception as error:
        channel.say("broken", words=failure(error))
    else:
        channel.say("ready")
    while True:
        job = channel.next()
        try:
            making[job["kind"]](models, folder / "takes" / job["do"], job["asked"])
            channel.say("finished")
        except Cancelled:
            channel.say("cancelled")
        except Exception as error:
            channel.say("failed", words=failure(error))


def failure(error: Exception) -> str:
    """What went wrong, in a sentence; a bug goes to the terminal as well."""
    if isinstance(error, InputError | Refused):
        return by_their_names(str(error))
    if isinstance(error, ModuleNotFoundError) and (missing := missing_extra(error)) is not None:
        return str(missing)
    if isinstance(error, MemoryError) or "out of memory" in str(error).lower():
        return "There is not enough memory for this; ask for fewer frames or a smaller picture."
    log.error("%s", "".join(traceback.format_exception(error)))
    return f"The studio has a bug here: {type(error).__name__}. The terminal says where."
