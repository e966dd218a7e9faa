"""Who may ask, and how much: the cookie of the token, Host and Origin, kinds and sizes of bodies; headers for the page.

A page on any other site can make a browser send requests to 127.0.0.1. It cannot read the token, cannot send the strict
cookie, and names itself in `Origin`; a name that was bent to 127.0.0.1 gives itself away in `Host`.
"""

import hmac
import json
import re
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

from curvedray.app.limits import LARGEST_BODY
from curvedray.app.requests import ID
from curvedray.errors import InputError
from curvedray.inputs import megabytes

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

CHANGING = ("POST", "PUT", "DELETE", "PATCH")
UPLOADS = "/api/uploads/"
UPLOADED = re.compile(rf"[^\s'\"]*/uploads/[a-z]+/{ID}/")
POLICY = (
    "default-src 'self'; img-src 'self' blob: data:; media-src 'self' blob:; object-src 'none'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
NO_TOKEN = "Open the address that `curvedray app` printed: it carries the token that lets you in."


class TooLarge(Exception):
    """A body went past its limit while it was read."""


@dataclass
class Guard:
    """Middleware around the studio. `port` is known once the server listens."""

    app: App
    token: str
    port: int

    @property
    def cookie(self) -> str:
        """Cookies are shared by all ports of a host, so the name holds the port."""
        return f"curvedray-{self.port}"

    @property
    def hosts(self) -> tuple[str, ...]:
        return f"127.0.0.1:{self.port}", f"localhost:{self.port}"

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # no WebSockets here
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        answer = self._refusal(scope, headers)
        if answer is not None:
            await _answer(send, *answer)
            return
        await self.app(scope, _bounded(scope, headers, receive), _with_headers(send))

    def _refusal(self, scope: MutableMapping[str, Any], headers: dict[str, str]) -> tuple[int, str, dict] | None:
        """Status, sentence and headers of what is not let through; None for what is."""
        method, path = scope["method"], scope["path"]
        if headers.get("host") not in self.hosts:
            return 421, f"Host: expected {self.hosts[0]}, got another", {}
        if headers.get("origin") not in (None, *(f"http://{host}" for host in self.hosts)):
            return 403, "Origin: expected the studio's own page, got another", {}
        if method in CHANGING and headers.get("sec-fetch-site") not in (None, "same-origin"):
            return 403, "Sec-Fetch-Site: expected the studio's own page, got another", {}
        given = _asked_token(scope) if method == "GET" and path == "/" else None
        if given is not None:
            if not self._is_token(given):
                return 401, NO_TOKEN, {}
            entry = f"{self.cookie}={self.token}; Path=/; SameSite=Strict; HttpOnly"
            return 303, "", {"location": "/", "set-cookie": entry}
        if not self._is_token(_cookies(headers).get(self.cookie, "")):
            return 401, NO_TOKEN, {}
        return _unfit_body(method, path, headers)

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self.token.encode())


def _asked_token(scope: MutableMapping[str, Any]) -> str | None:
    """The token in an address; none in one that no page of ours has."""
    try:
        said = parse_qs(scope.get("query_string", b"").decode("latin-1"), max_num_fields=20)
    except ValueError:
        return None
    return said["token"][0] if "token" in said else None


def _cookies(headers: dict[str, str]) -> dict[str, str]:
    try:
        return {name: morsel.value for name, morsel in SimpleCookie(headers.get("cookie", "")).items()}
    except CookieError:
        return {}


def _unfit_body(method: str, path: str, headers: dict[str, str]) -> tuple[int, str, dict] | None:
    """What a body's headers give away before a byte of it is read."""
    if method not in CHANGING:
        return None
    length = headers.get("content-length")
    has_body = length not in (None, "0") or "transfer-encoding" in headers
    wanted = "application/octet-stream" if path.startswith(UPLOADS) else "application/json"
    kind = headers.get("content-type", "").split(";")[0].strip().lower()
    if (has_body or method != "DELETE") and kind != wanted:
        return 415, f"Content-Type: expected {wanted}, got {kind or 'none'}", {}
    if length is not None and not (length.isascii() and length.isdecimal()):
        return 400, "Content-Length: expected a number, got something else", {}
    if not path.startswith(UPLOADS) and int(length or 0) > LARGEST_BODY:
        return 413, f"body: expected at most {megabytes(LARGEST_BODY)}, got {megabytes(int(length or 0))}", {}
    return None


def _bounded(scope: MutableMapping[str, Any], headers: dict[str, str], receive: Receive) -> Receive:
    """The body, until it is longer than a request in JSON may be; uploads have bounds of their own."""
    if scope["path"].startswith(UPLOADS):
        return receive
    seen = 0

    async def counted() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > LARGEST_BODY:
            raise TooLarge
        return message

    return counted


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = {name.lower() for name, _ in message["headers"]}
            more = {"cache-control": "no-store", **HEADERS}
            added = [(k.encode(), v.encode()) for k, v in more.items() if k.encode() not in own]
            message = {**message, "headers": [*message["headers"], *added]}
        await send(message)

    return sending


async def _answer(send: Send, status: int, words: str, headers: dict[str, str]) -> None:
    body = json.dumps(error_record(words)).encode() if words else b""
    headers = {"content-type": "application/json", "content-length": str(len(body)), **headers}
    start = [(name.encode(), value.encode()) for name, value in headers.items()]
    await _with_headers(send)({"type": "http.response.start", "status": status, "headers": start})
    await send({"type": "http.response.body", "body": body})


def error_record(error: InputError | str) -> dict[str, dict[str, str]]:
    """A mistake as the page gets it: its four parts, and the sentence."""
    if isinstance(error, InputError):
        parts = {part: by_their_names(getattr(error, part)) for part in ("name", "expected", "got", "fix")}
        return {"error": {**parts, "words": by_their_names(str(error))}}
    return {"error": {"name": "", "expected": "", "got": "", "fix": "", "words": error}}


def by_their_names(words: str) -> str:
    """A sentence about uploaded files that calls them what the person called them, not where the studio keeps them."""
    return UPLOADED.sub("", words)
