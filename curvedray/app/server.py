"""The studio as a server on 127.0.0.1: routes, the page's files, and an end without a traceback."""

import errno
import secrets
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import FrameType

import uvicorn
from starlette.applications import Starlette
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from curvedray.app.guard import Guard
from curvedray.app.routes import routes
from curvedray.app.studio import Studio
from curvedray.errors import InputError

STATIC = Path(__file__).with_name("static")
HOST = "127.0.0.1"
USUAL_PORT = 8660
PATIENCE = 3  # seconds that open requests have to end in, on leaving
MOST_CONNECTIONS = 256


def make_app(studio: Studio, token: str, port: int, started: Callable[[], None] = lambda: None) -> Guard:
    """The studio behind its guard, as an ASGI application."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        await studio.start()
        started()
        try:
            yield
        finally:
            await studio.stop()

    page: list[Route | Mount] = [*routes(studio), Mount("/", StaticFiles(directory=STATIC, html=True))]
    return Guard(Starlette(routes=page, lifespan=lifespan), token, port)


def serve(
    studio: Studio, port: int | None = None, token: str | None = None, opened: Callable[[str], None] = print
) -> None:
    """Serve until Ctrl-C; `opened` is told the address once the page can be opened."""
    listening = _listening(port)
    number = listening.getsockname()[1]
    token = token or secrets.token_urlsafe(24)
    address = f"http://{HOST}:{number}/?token={token}"
    config = uvicorn.Config(
        make_app(studio, token, number, lambda: opened(address)),
        log_level="error",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=PATIENCE,
        limit_concurrency=MOST_CONNECTIONS,
        loop="asyncio",
        http="h11",
        ws="none",
        lifespan="on",
    )
    with studio.locked(), listening:
        _Server(config, studio).run(sockets=[listening])


class _Server(uvicorn.Server):
    """Streams of events never end by themselves: on leaving they are told to."""

    def __init__(self, config: uvicorn.Config, studio: Studio):
        super().__init__(config)
        self.studio = studio

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.studio.leave()
        super().handle_exit(sig, frame)


def _listening(port: int | None) -> socket.socket:
    """A socket on the port that was asked for; where none was, on the usual one or, if it is taken, any free one."""
    for number in (USUAL_PORT, 0) if port is None else (port,):
        listening = socket.socket()
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((HOST, number))
            listening.listen()  # whoever reads the address may connect before the first request is served
            return listening
        except OSError as error:
            listening.close()
            if port is None and number:
                continue
            taken = error.errno == errno.EADDRINUSE
            fix = "Leave --port out, and a free one is taken."
            got = f"{number}, which is taken" if taken else f"{number}, which may not be used"
            raise InputError("--port", "a free port", got, fix) from error
    raise AssertionError("the loop above returns or raises")
