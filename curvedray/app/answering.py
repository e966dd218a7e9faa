"""How a call is answered: a body checked by its model, work done in a thread, mistakes as sentences."""

import json
import logging
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import anyio
import anyio.to_thread
from pydantic import BaseModel, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from curvedray.app.guard import TooLarge, error_record
from curvedray.app.limits import LARGEST_BODY, MOST_AT_ONCE
from curvedray.errors import InputError
from curvedray.inputs import megabytes, parsed_json

log = logging.getLogger(__name__)
AT_ONCE = 2  # threads that compute; more only wait for one another, and for the worker
Asked = TypeVar("Asked", bound=BaseModel)
Endpoint = Callable[[Request], Awaitable[Response]]


class Refused(Exception):
    """A request that is understood and not answered: a status and a sentence."""

    def __init__(self, status: int, words: str, headers: dict[str, str] | None = None):
        super().__init__(words)
        self.status, self.words, self.headers = status, words, headers or {}


class Threads:
    """A few threads for all computing, and a bounded crowd that waits for them."""

    def __init__(self) -> None:
        self.limiter: anyio.CapacityLimiter | None = None
        self.waiting = 0

    async def run(self, work: Callable[..., Any], *given: Any) -> Any:
        if self.waiting >= MOST_AT_ONCE:
            raise Refused(503, "Too many requests at once. Try again in a moment.", {"Retry-After": "1"})
        self.limiter = self.limiter or anyio.CapacityLimiter(AT_ONCE)
        self.waiting += 1
        try:
            return await anyio.to_thread.run_sync(work, *given, limiter=self.limiter)
        finally:
            self.waiting -= 1


async def body_of(request: Request, model: type[Asked]) -> Asked:
    """The request's JSON as its model; nothing unknown, infinite or out of bounds passes."""
    try:
        raw = await request.body()
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refused(400, "body: expected JSON in UTF-8, got other bytes") from error
    try:
        return model.model_validate(parsed_json(text, "body", "JSON"))
    except InputError as error:
        raise Refused(400, str(error)) from error
    except ValidationError as error:
        raise Refused(400, in_words(error)) from error


def in_words(error: ValidationError) -> str:
    """The first thing that is wrong, and where."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"]) or "body"
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    return f"{where}: {first['msg']}{more}"


def answering(endpoint: Endpoint) -> Endpoint:
    """What goes wrong in an endpoint, as its status and its sentence."""

    async def answered(request: Request) -> Response:
        try:
            return await endpoint(request)
        except Refused as refused:
            return JSONResponse(error_record(refused.words), refused.status, refused.headers)
        except InputError as error:
            return JSONResponse(error_record(error), 422)
        except TooLarge:
            return JSONResponse(error_record(f"body: expected at most {megabytes(LARGEST_BODY)}, got more"), 413)
        except Exception:
            log.exception("%s %s", request.method, request.url.path)
            return JSONResponse(error_record("The studio has a bug here; the terminal says where."), 500)

    return answered


class _Collected(logging.Handler):
    """What the rooms below warn about in one thread."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.thread, self.notes = threading.get_ident(), list[str]()

    def emit(self, record: logging.LogRecord) -> None:
        if record.thread == self.thread:
            self.notes.append(record.getMessage())


@contextmanager
def collected_notes() -> Iterator[list[str]]:
    """Every warning of the package while the block runs in this thread: on the page they stand beside the answer."""
    handler, logger = _Collected(), logging.getLogger("curvedray")
    logger.addHandler(handler)
    try:
        yield handler.notes
    finally:
        logger.removeHandler(handler)


def notes_header(notes: list[str]) -> dict[str, str]:
    """Notes beside an answer that is no JSON."""
    return {"Studio-Notes": json.dumps(notes)}
