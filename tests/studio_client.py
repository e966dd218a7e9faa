"""A studio in this process, asked through ASGI: no sockets."""

from typing import Any

import anyio
import httpx

from curvedray.app.server import make_app
from curvedray.app.studio import Studio

TOKEN, PORT = "a-token-for-tests", 8660
BASE = f"http://127.0.0.1:{PORT}"
COOKIE = {f"curvedray-{PORT}": TOKEN}
LENS = {"name": "fisheye-150"}
ORBIT = {"moves": "orbit left 40deg", "lens": LENS}


class Asker:
    """Calls of one studio, each in an event loop of its own."""

    def __init__(self, studio: Studio):
        self.studio = studio
        self.app = make_app(studio, TOKEN, PORT)

    def __call__(self, method: str, path: str, body: Any = None, **more: Any) -> httpx.Response:
        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(self.app)
            async with httpx.AsyncClient(
                transport=transport, base_url=BASE, cookies=more.pop("cookies", COOKIE)
            ) as client:
                sent = {} if body is None else {"json": body}
                return await client.request(method, path, **sent, **more)

        return anyio.run(ask)

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self("GET", path, **more)

    def post(self, path: str, body: Any, **more: Any) -> httpx.Response:
        return self("POST", path, body, **more)

    def upload(self, kind: str, name: str, content: bytes, **query: str) -> str:
        query_string = "&".join(f"{k}={v}" for k, v in {"name": name, **query}.items())
        headers = {"content-type": "application/octet-stream"}
        answer = self("PUT", f"/api/uploads/{kind}?{query_string}", content=content, headers=headers)
        assert answer.status_code == 201, answer.text
        return answer.json()["upload"]
