"""A worker for tests of the studio that makes nothing, in a moment: it imports neither torch nor a model."""

import os
import signal
import time
from pathlib import Path
from typing import Any

from curvedray.app.worker_channel import Cancelled, Channel


def quick_worker(connection: Any, folder: Path) -> None:
    """Makes takes of three steps; prompts say what befalls it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    channel = Channel(connection)
    channel.say("ready")
    while True:
        job = channel.next()
        prompt, take = job["asked"]["prompt"], folder / "takes" / job["do"]
        try:
            for step in range(3):
                channel.say("step", step=step + 1, steps=3, picture=b"\xff\xd8\xff", frames=1)
                while "wait" in prompt:
                    time.sleep(0.01)
                    channel.check()
                if "deaf" in prompt:
                    time.sleep(3600)
                if "crash" in prompt and ("always" in prompt or not (take / "crashed").exists()):
                    (take / "crashed").write_text("once")
                    os.kill(os.getpid(), signal.SIGKILL)
            if "fail" in prompt:
                raise ValueError("no such colour")
            (take / "film.mp4").write_bytes(b"video")
            channel.say("news", files={"video": "film.mp4"}, facts={"command": "curvedray generate"})
            channel.say("finished")
        except Cancelled:
            channel.say("cancelled")
        except ValueError as error:
            channel.say("failed", words=str(error))
