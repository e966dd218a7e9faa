"""Every call of API.md and the function that answers it."""

import io
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from PIL import Image
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from curvedray.app import requests
from curvedray.app.answering import Refused, answering, body_of, collected_notes, notes_header
from curvedray.app.camera_files import read_file
from curvedray.app.exports import exported
from curvedray.app.facts import facts
from curvedray.app.paths import described, keys_of, path_json, path_of
from curvedray.app.projects import Project
from curvedray.app.scenes import clearance, picture_of, raw_metres, scene_json
from curvedray.app.studio import Studio
from curvedray.app.take_routes import take_routes
from curvedray.doctor import examine


def routes(studio: Studio) -> list[Route]:
    computed = [
        _computed(studio, "/api/path", requests.PathAsked, _path),
        _computed(studio, "/api/keys", requests.KeysAsked, _keys),
        _computed(studio, "/api/describe", requests.PathAsked, lambda s, asked: described(asked, s.uploads)),
        _computed(studio, "/api/scene", requests.SceneLook, lambda s, asked: scene_json(asked)),
        _computed(studio, "/api/check", requests.CheckAsked, _check),
        _computed(studio, "/api/import", requests.ImportAsked, _import),
        _computed(studio, "/api/map", requests.MapAsked, _map),
        _drawn(studio, "/api/picture", requests.PictureAsked, _picture),
        _drawn(studio, "/api/export", requests.ExportAsked, lambda s, asked: exported(asked, s.uploads)),
    ]

    async def start(request: Request) -> Response:
        told = await studio.threads.run(facts, studio.shelf, studio.folder)
        return JSONResponse(told | {"worker": studio.worker})

    async def doctor(request: Request) -> Response:
        return JSONResponse({"findings": [asdict(i) for i in await studio.threads.run(examine)]})

    async def upload(request: Request) -> Response:
        claimed = int(request.headers.get("content-length", 0))
        name = request.query_params.get("name", "")
        into = request.query_params.get("into")
        kept = await studio.uploads.keep(request.path_params["kind"], name, into, request.stream(), claimed)
        return JSONResponse(kept, 201)

    async def remove_upload(request: Request) -> Response:
        studio.uploads.remove(request.path_params["name"])
        return JSONResponse({"removed": True})

    async def map_file(request: Request) -> Response:
        return FileResponse(studio.maps.file(request.path_params["map"]), filename="map.npz")

    async def map_picture(request: Request) -> Response:
        made = await studio.threads.run(studio.maps.picture, request.path_params["map"], request.path_params["frame"])
        return Response(made, media_type="image/png")

    async def projects(request: Request) -> Response:
        return JSONResponse({"projects": studio.projects.all()})

    async def project(request: Request) -> Response:
        name = request.path_params["name"]
        if request.method == "PUT":
            return JSONResponse(studio.projects.write(name, await body_of(request, Project)))
        if request.method == "DELETE":
            studio.projects.remove(name)
            return JSONResponse({"removed": True})
        return JSONResponse(studio.projects.read(name))

    return [
        Route("/api/start", answering(start), methods=["GET"]),
        Route("/api/doctor", answering(doctor), methods=["GET"]),
        Route("/api/uploads/{kind}", answering(upload), methods=["PUT"]),
        Route("/api/uploads/{name}", answering(remove_upload), methods=["DELETE"]),
        *computed,
        *take_routes(studio),
        Route("/api/maps/{map}/map.npz", answering(map_file), methods=["GET"]),
        Route("/api/maps/{map}/{frame:int}.png", answering(map_picture), methods=["GET"]),
        Route("/api/projects", answering(projects), methods=["GET"]),
        Route("/api/projects/{name}", answering(project), methods=["GET", "PUT", "DELETE"]),
        Route("/api/{rest:path}", answering(_unknown), methods=["GET", "POST", "PUT", "DELETE"]),
    ]


async def _unknown(request: Request) -> Response:
    raise Refused(404, f"{request.method} {request.url.path[:100]}: no such call")


def _computed(studio: Studio, path: str, model: type[BaseModel], work: Callable[[Studio, Any], dict]) -> Route:
    """A POST whose answer is computed in a thread, with what was warned about on the way."""

    def noted(asked: BaseModel) -> dict:
        with collected_notes() as notes:
            answer = work(studio, asked)
        if notes:
            answer["notes"] = [*answer.get("notes", []), *notes]
        return answer

    async def endpoint(request: Request) -> Response:
        return JSONResponse(await studio.threads.run(noted, await body_of(request, model)))

    return Route(path, answering(endpoint), methods=["POST"])


def _drawn(studio: Studio, path: str, model: type[BaseModel], work: Callable[[Studio, Any], Response]) -> Route:
    """A POST whose answer is a file."""

    async def endpoint(request: Request) -> Response:
        return await studio.threads.run(work, studio, await body_of(request, model))

    return Route(path, answering(endpoint), methods=["POST"])


def _path(studio: Studio, asked: requests.PathAsked) -> dict:
    return path_json(path_of(asked, studio.uploads), asked)


def _import(studio: Studio, asked: requests.ImportAsked) -> dict:
    raw, format, reason = read_file(asked.path.model_copy(update={"lens": None}), studio.uploads)
    path = asked.path.model_copy(update={"format": format})
    facts = {"format": format, "reason": reason, "file_frames": len(raw), "file_unit": raw.unit}
    return path_json(path_of(path, studio.uploads), path) | facts


def _keys(studio: Studio, asked: requests.KeysAsked) -> dict:
    return {"keys": keys_of(asked.path, asked.count, studio.uploads)}


def _check(studio: Studio, asked: requests.CheckAsked) -> dict:
    words = clearance(asked.scene, path_of(asked.path, studio.uploads).cameras)
    return {"clear": not words, "words": words}


def _map(studio: Studio, asked: requests.MapAsked) -> dict:
    studio.shelf.check(asked.model, None)
    return studio.maps.make(asked, studio.uploads)


def _picture(studio: Studio, asked: requests.PictureAsked) -> Response:
    made = picture_of(asked, studio.uploads)
    headers = notes_header(made.notes)
    if made.limits is not None:
        headers["Studio-Limits"] = f"{made.limits[0]:.6g},{made.limits[1]:.6g}"
    if asked.what == "metres":
        return Response(raw_metres(made.metres), media_type="application/octet-stream", headers=headers)
    stream = io.BytesIO()
    Image.fromarray(made.pixels.numpy()).save(stream, "PNG", compress_level=1)
    return Response(stream.getvalue(), media_type="image/png", headers=headers)
