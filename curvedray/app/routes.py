"""Every call of API.md and the function that answers it."""

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from curvedray.app.calls import answering
from curvedray.app.studio import Studio


def routes(studio: Studio) -> list[Route]:
    async def doctor(request: Request) -> Response:
        return JSONResponse({"findings": await studio.threads.run(_findings)})

    return [Route("/api/doctor", answering(doctor), methods=["GET"])]


def _findings() -> list[dict]:
    from dataclasses import asdict

    from curvedray.doctor import examine

    return [asdict(finding) for finding in examine()]
