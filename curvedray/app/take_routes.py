"""The calls about takes: ask for them, look at them, vary them, cancel them, and hear of them."""

import json
from typing import Any, Literal

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from curvedray.app.answering import Refused, answering, body_of, in_words
from curvedray.app.limits import LONGEST_LIST
from curvedray.app.paths import path_of
from curvedray.app.queue import TakeQueue
from curvedray.app.requests import AgainAsked, FilmAsked, ScoreAsked, TransferAsked
from curvedray.app.scenes import blocks_of
from curvedray.app.studio import Studio
from curvedray.app.takes import Take

KINDS = {".mp4": "video/mp4", ".png": "image/png", ".jpg": "image/jpeg", ".json": "application/json"}


def take_routes(studio: Studio) -> list[Route]:
    async def ask_film(request: Request) -> Response:
        asked = await body_of(request, FilmAsked)
        await studio.threads.run(_check_film, studio, asked)
        return JSONResponse(_added(studio, "film", asked.model_dump()).summary(), 202)

    async def ask_score(request: Request) -> Response:
        asked = await body_of(request, ScoreAsked)
        studio.uploads.path(asked.upload, "video")
        return JSONResponse(_added(studio, "score", asked.model_dump()).summary(), 202)

    async def ask_transfer(request: Request) -> Response:
        asked = await body_of(request, TransferAsked)
        studio.shelf.check(asked.model, asked.adapter)
        studio.uploads.path(asked.upload, "video")
        return JSONResponse(_added(studio, "transfer", asked.model_dump()).summary(), 202)

    async def again(request: Request) -> Response:
        take = studio.takes.named(request.path_params["take"])
        changes = (await body_of(request, AgainAsked)).changes
        if take.kind != "film":
            raise Refused(409, "again: expected a film, got another kind of take")
        asked = [_changed(take.asked, change) for change in changes]
        for one in asked:
            await studio.threads.run(_check_film, studio, one)
        queue_of(studio).check_room(len(asked))
        first = take.again or take.take
        made = [_added(studio, "film", one.model_dump(), first) for one in asked]
        return JSONResponse({"takes": [one.summary() for one in made]}, 202)

    async def all_takes(request: Request) -> Response:
        limit = request.query_params.get("limit", "50")
        count = min(int(limit), LONGEST_LIST) if limit.isascii() and limit.isdecimal() and len(limit) < 6 else 50
        takes, more = studio.takes.newest(request.query_params.get("before"), max(count, 1))
        return JSONResponse({"takes": [take.summary() for take in takes], "more": more})

    async def one_take(request: Request) -> Response:
        return JSONResponse(studio.takes.whole(studio.takes.named(request.path_params["take"])))

    async def remove(request: Request) -> Response:
        take = studio.takes.named(request.path_params["take"])
        if not take.is_over:
            queue_of(studio).cancel(take)
            return JSONResponse({"cancelled": True}, 202)
        studio.takes.remove(take)
        studio.hub.tell("removed", {"take": take.take})
        return JSONResponse({"removed": True})

    async def file(request: Request) -> Response:
        take = studio.takes.named(request.path_params["take"])
        path = studio.takes.file(take, request.path_params["name"])
        kind = KINDS.get(path.suffix, "application/octet-stream")
        whole = request.query_params.get("download") == "1"
        name = f"{take.take}-{path.name}" if whole else None
        return FileResponse(path, media_type=kind, filename=name)

    async def step(request: Request) -> Response:
        take = studio.takes.named(request.path_params["take"])
        picture = queue_of(studio).pictures.get(take.take)
        if picture is None:
            raise Refused(404, "step: there is no picture of it now")
        return Response(picture, media_type="image/jpeg")

    async def events(request: Request) -> Response:
        stream = studio.hub.listen(request.headers.get("last-event-id"), {"worker": studio.worker})
        return StreamingResponse(stream, media_type="text/event-stream")

    return [
        Route("/api/takes", answering(ask_film), methods=["POST"]),
        Route("/api/takes", answering(all_takes), methods=["GET"]),
        Route("/api/takes/{take}", answering(one_take), methods=["GET"]),
        Route("/api/takes/{take}", answering(remove), methods=["DELETE"]),
        Route("/api/takes/{take}/again", answering(again), methods=["POST"]),
        Route("/api/takes/{take}/step.jpg", answering(step), methods=["GET"]),
        Route("/api/takes/{take}/files/{name}", answering(file), methods=["GET"]),
        Route("/api/score", answering(ask_score), methods=["POST"]),
        Route("/api/transfer", answering(ask_transfer), methods=["POST"]),
        Route("/api/events", answering(events), methods=["GET"]),
    ]


def queue_of(studio: Studio) -> TakeQueue:
    if studio.queue is None:
        raise Refused(409, "This studio has no worker.")
    return studio.queue


def _added(
    studio: Studio, kind: Literal["film", "score", "transfer"], asked: dict[str, Any], again: str | None = None
) -> Take:
    """Nothing awaits between the look at the queue and the new take in it: it never grows past its bound."""
    queue = queue_of(studio)
    queue.check_room()
    take = studio.takes.new(kind, asked, again)
    queue.add(take)
    return take


def _check_film(studio: Studio, asked: FilmAsked) -> None:
    """Refuse now what would fail in the worker: an unknown model, a move that is not understood, a map that is gone."""
    studio.shelf.check(asked.model, asked.adapter)
    path_of(asked.path, studio.uploads)
    if asked.scene is not None and asked.scene.is_blocks:
        blocks_of(asked.scene)
    if asked.map is not None:
        studio.maps.file(asked.map)


def _changed(asked: dict[str, Any], change: dict[str, Any]) -> FilmAsked:
    """The same film with some fields changed; `lens` is its path's, `project` the page's state of the new take."""
    change = dict(change)
    record = {**asked, "project": None}
    if "lens" in change:
        record["path"] = {**asked["path"], "lens": change.pop("lens")}
        if record["path"]["keys"] is not None:  # one lens for all, in place of the keys' own
            record["path"]["keys"] = [{**key, "lens": None} for key in record["path"]["keys"]]
    try:
        return FilmAsked.model_validate(json.loads(json.dumps({**record, **change})))
    except ValidationError as error:
        raise Refused(400, in_words(error)) from error
