"""A worker for tests of the studio that makes nothing, in a moment: it imports neither torch nor a model."""

import os
import signal
import time
from pathlib import Path
from typing import Any

from curvedray.app.line import Cancelled, Line


def quick_worker(connection: Any, folder: Path) -> None:
    """Makes takes of three steps; prompts say what befalls it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    line = Line(connection)
    line.say("ready")
    while True:
        job = line.next()
        prompt, take = job["asked"]["prompt"], folder / "takes" / job["do"]
        try:
            for step in range(3):
                line.say("step", step=step + 1, steps=3, picture=b"\xff\xd8\xff", frames=1)
                while "wait" in prompt:
                    time.sleep(0.01)
                    line.check()
                if "deaf" in prompt:
                    time.sleep(3600)
                if "crash" in prompt and ("always" in prompt or not (take / "crashed").exists()):
                    (take / "crashed").write_text("once")
                    os.kill(os.getpid(), signal.SIGKILL)
            if "fail" in prompt:
                raise ValueError("no such colour")
            (take / "film.mp4").write_bytes(b"video")
            line.say("news", files={"video": "film.mp4"}, facts={"command": "curvedray generate"})
            line.say("finished")
        except Cancelled:
            line.say("cancelled")
        except ValueError as error:
            line.say("failed", words=str(error))
