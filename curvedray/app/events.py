"""Server-sent events: what happens is told to every open page, and a page that was away is told what it missed."""

import asyncio
import json
import secrets
from collections import deque
from collections.abc import AsyncIterator
from typing import Any

from curvedray.app.answering import Refused
from curvedray.app.limits import MOST_LISTENERS

KEPT = 500  # events that a page may have missed
WAITING = 200  # events that a slow page may lag behind
HEARTBEAT = 15.0  # seconds: a comment that keeps the connection, and finds out that nobody listens


class Hub:
    """Tells events to listeners. To be used in the event loop's thread alone."""

    def __init__(self) -> None:
        self.boot = secrets.token_hex(4)  # another studio's numbers mean nothing here
        self.number = 0
        self.kept: deque[tuple[int, bytes]] = deque(maxlen=KEPT)
        self.listeners: set[asyncio.Queue[bytes | None]] = set()
        self.closed = False

    def tell(self, event: str, data: dict[str, Any]) -> None:
        self.number += 1
        message = self._message(event, data)
        self.kept.append((self.number, message))
        for listener in list(self.listeners):
            try:
                listener.put_nowait(message)
            except asyncio.QueueFull:  # it is let go, comes again, and is told what it missed
                self._drop(listener)

    def _message(self, event: str, data: dict[str, Any]) -> bytes:
        return f"id: {self.boot}-{self.number}\nevent: {event}\ndata: {json.dumps(data)}\n\n".encode()

    def listen(self, last: str | None, hello: dict[str, Any]) -> AsyncIterator[bytes]:
        """The stream of one page, from after the event it saw last."""
        if len(self.listeners) >= MOST_LISTENERS:
            raise Refused(503, "Too many pages are open.", {"Retry-After": "5"})
        missed = self._missed(last)
        listener: asyncio.Queue[bytes | None] = asyncio.Queue(WAITING + KEPT)
        self.listeners.add(listener)
        listener.put_nowait(self._message("hello", hello | {"resumed": missed is not None}))
        for message in missed or ():
            listener.put_nowait(message)
        return self._stream(listener)

    def _missed(self, last: str | None) -> list[bytes] | None:
        """What came after an event; None where that cannot be told any more."""
        boot, _, number = (last or "").partition("-")
        if boot != self.boot or not (number.isascii() and number.isdecimal() and len(number) < 19):
            return None
        seen, oldest = int(number), self.kept[0][0] if self.kept else self.number + 1
        if not oldest - 1 <= seen <= self.number:
            return None
        return [message for at, message in self.kept if at > seen]

    async def _stream(self, listener: asyncio.Queue[bytes | None]) -> AsyncIterator[bytes]:
        try:
            while not self.closed:
                try:
                    message = await asyncio.wait_for(listener.get(), HEARTBEAT)
                except TimeoutError:
                    message = b": still here\n\n"
                if message is None:
                    return
                yield message
        finally:
            self.listeners.discard(listener)

    def _drop(self, listener: asyncio.Queue[bytes | None]) -> None:
        self.listeners.discard(listener)
        while not listener.empty():
            listener.get_nowait()
        listener.put_nowait(None)

    def close(self) -> None:
        """End every stream."""
        self.closed = True
        for listener in list(self.listeners):
            self._drop(listener)
