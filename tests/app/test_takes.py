"""Takes wait in a queue, are made by one worker, and none is lost. The tests' own worker makes nothing, at once."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from studio_client import BASE, COOKIE, ORBIT
from studio_worker import quick_worker

from curvedray.app import queue as queue_module
from curvedray.app.limits import MOST_LISTENERS, MOST_WAITING
from curvedray.app.server import make_app
from curvedray.app.studio import Studio

FILM = {"prompt": "a red ball in a desert courtyard", "path": ORBIT}
PATIENCE = 300.0  # seconds; a busy machine is slow


class Running:
    """A studio with a worker, in one event loop, for the length of a test."""

    def __init__(self, folder: Path):
        self.studio = Studio(folder, work=quick_worker)
        self.app = make_app(self.studio, "a-token-for-tests", 8660)

    async def __aenter__(self) -> "Running":
        await self.studio.start()
        self.client = httpx.AsyncClient(transport=httpx.ASGITransport(self.app), base_url=BASE, cookies=COOKIE)
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.client.aclose()
        await self.studio.stop()

    async def film(self, prompt: str, **more: Any) -> str:
        answer = await self.client.post("/api/takes", json=FILM | {"prompt": prompt} | more)
        assert answer.status_code == 202, answer.text
        return answer.json()["take"]

    async def until(self, take: str, *states: str) -> dict[str, Any]:
        for _ in range(int(PATIENCE / 0.02)):
            record = (await self.client.get(f"/api/takes/{take}")).json()
            if record["state"] in states:
                return record
            await asyncio.sleep(0.02)
        raise AssertionError(f"{take} is {record['state']} and not {' or '.join(states)}")


def test_a_take_is_made_and_kept_and_its_files_are_served(tmp_path):
    async def run() -> None:
        async with Running(tmp_path) as studio:
            take = await studio.film("quick", title="mine", project={"studio": 1, "view": [1, 2]})
            made = await studio.until(take, "finished")
            assert made["files"] == {"video": "film.mp4"}
            assert made["asked"]["project"] == {"studio": 1, "view": [1, 2]}
            file = await studio.client.get(f"/api/takes/{take}/files/film.mp4")
            assert file.content == b"video"
            part = await studio.client.get(f"/api/takes/{take}/files/film.mp4", headers={"range": "bytes=1-2"})
            assert (part.status_code, part.content) == (206, b"id")
            for name in ("take.json", "project.json", "..%2ftake.json", "crashed", "film.mp4%00"):
                assert (await studio.client.get(f"/api/takes/{take}/files/{name}")).status_code == 404
            listed = (await studio.client.get("/api/takes")).json()
            assert [row["take"] for row in listed["takes"]] == [take]
            assert "project" not in listed["takes"][0]["asked"]
            assert (await studio.client.delete(f"/api/takes/{take}")).json() == {"removed": True}
            assert (await studio.client.get(f"/api/takes/{take}")).status_code == 404
            assert not (tmp_path / "takes" / take).exists()

    asyncio.run(run())


def test_the_line_is_first_come_first_served_bounded_and_cancelled_at_once_or_at_the_next_step(tmp_path):
    async def run() -> None:
        async with Running(tmp_path) as studio:
            first = await studio.film("wait here")
            await studio.until(first, "working")
            waiting = [await studio.film(f"number {i}") for i in range(MOST_WAITING)]
            full = await studio.client.post("/api/takes", json=FILM)
            assert full.status_code == 429
            assert int(full.headers["retry-after"]) >= 1
            many = await studio.client.post(f"/api/takes/{first}/again", json={"changes": [{"seed": 1}]})
            assert many.status_code == 429
            places = [(await studio.client.get(f"/api/takes/{take}")).json()["place"] for take in waiting]
            assert places == list(range(1, MOST_WAITING + 1))
            picture = await studio.client.get(f"/api/takes/{first}/step.jpg")
            assert picture.headers["content-type"] == "image/jpeg"
            assert (await studio.client.delete(f"/api/takes/{waiting[0]}")).json() == {"cancelled": True}
            assert (await studio.until(waiting[0], "cancelled"))["place"] is None
            await studio.client.delete(f"/api/takes/{first}")
            await studio.until(first, "cancelled")
            over = [await studio.until(take, "finished") for take in waiting[1:]]
            made = [(tmp_path / "takes" / row["take"] / "film.mp4").stat().st_mtime_ns for row in over]
            assert made == sorted(made)

    asyncio.run(run())


def test_a_worker_that_is_killed_comes_back_and_its_take_is_made_again_once(tmp_path):
    async def run() -> None:
        async with Running(tmp_path) as studio:
            crash, after = await studio.film("crash once"), await studio.film("quick")
            made = await studio.until(crash, "finished")
            assert any("made again" in note for note in made["notes"])
            await studio.until(after, "finished")
            always = await studio.film("crash always")
            assert "stopped twice" in (await studio.until(always, "failed"))["failure"]
            await studio.until(await studio.film("quick"), "finished")

    asyncio.run(run())


def test_a_worker_that_does_not_listen_is_ended_and_the_next_take_is_made(tmp_path, monkeypatch):
    monkeypatch.setattr(queue_module, "PATIENCE", 0.2)

    async def run() -> None:
        async with Running(tmp_path) as studio:
            deaf, after = await studio.film("deaf"), await studio.film("quick")
            await studio.until(deaf, "working")
            await studio.client.delete(f"/api/takes/{deaf}")
            await studio.until(deaf, "cancelled")
            await studio.until(after, "finished")

    asyncio.run(run())


def test_a_take_that_is_cancelled_is_over_when_the_worker_dies_before_it_answers(tmp_path):
    """It was put into the queue again, and made."""

    async def run() -> None:
        async with Running(tmp_path) as studio:
            deaf, after = await studio.film("deaf"), await studio.film("quick")
            await studio.until(deaf, "working")
            await studio.client.delete(f"/api/takes/{deaf}")
            assert studio.studio.queue is not None
            studio.studio.queue.process.kill()
            over = await studio.until(deaf, "cancelled", "queued")
            assert (over["state"], over["notes"]) == ("cancelled", [])
            await studio.until(after, "finished")

    asyncio.run(run())


def test_a_take_that_is_cancelled_is_over_when_the_studio_is_closed_before_the_worker_answers(tmp_path):
    """Its record said `working`, and it was made when the studio was opened again."""

    async def run() -> None:
        async with Running(tmp_path) as studio:
            deaf = await studio.film("deaf")
            await studio.until(deaf, "working")
            await studio.client.delete(f"/api/takes/{deaf}")
        record = json.loads((tmp_path / "takes" / deaf / "take.json").read_text())
        assert (record["state"], record["doing"]) == ("cancelled", "")
        async with Running(tmp_path) as studio:
            await studio.until(await studio.film("quick"), "finished")
            assert (await studio.until(deaf, "cancelled"))["notes"] == []

    asyncio.run(run())


def test_a_studio_that_ended_in_the_middle_goes_on_where_it_was(tmp_path):
    async def run() -> None:
        async with Running(tmp_path) as studio:
            done = await studio.film("quick")
            await studio.until(done, "finished")
            under_way, waiting = await studio.film("wait"), await studio.film("quick too")
            await studio.until(under_way, "working")
        record = tmp_path / "takes" / under_way / "take.json"
        record.write_text(record.read_text().replace('"wait"', '"quick"'))
        (tmp_path / "takes" / "20260101-000000-abcdef").mkdir()
        (tmp_path / "takes" / "20260101-000000-abcdef" / "take.json").write_text("{damaged")
        async with Running(tmp_path) as studio:
            assert "made again" in " ".join((await studio.until(under_way, "finished"))["notes"])
            await studio.until(waiting, "finished")
            listed = (await studio.client.get("/api/takes?limit=2")).json()
            assert [row["take"] for row in listed["takes"]] == [waiting, under_way]
            assert listed["more"]
            rest = (await studio.client.get(f"/api/takes?before={under_way}")).json()
            assert [row["take"] for row in rest["takes"]] == [done]

    asyncio.run(run())


def test_what_fails_says_why_and_what_cannot_be_made_is_refused_at_once(tmp_path):
    async def run() -> None:
        async with Running(tmp_path) as studio:
            assert (await studio.until(await studio.film("fail"), "failed"))["failure"] == "no such colour"
            refused = [
                {"path": {"moves": "fly like a bird"}},
                {"model": "/etc/passwd"},
                {"adapter": "../secret.safetensors"},
                {"scene": {"text": "a house"}},
            ]
            for odd in refused:
                answer = await studio.client.post("/api/takes", json=FILM | odd)
                assert answer.status_code == 422, odd
            assert (
                await studio.client.post("/api/takes", json=FILM | {"map": "20260101-000000-abcdef"})
            ).status_code == 404
            assert (await studio.client.post("/api/takes", json=FILM | {"prompt": ""})).status_code == 400

    asyncio.run(run())


def test_a_take_is_varied_by_seed_lens_and_method(tmp_path):
    async def run() -> None:
        async with Running(tmp_path) as studio:
            take = await studio.film("quick")
            project = {"studio": 1, "film": {"seed": 7}}  # as the page has it for the new take, to reopen that
            changes = [{"seed": 7, "project": project}, {"lens": {"hfov": 90, "xi": 0.2}}, {"adapter": "none"}]
            answer = await studio.client.post(f"/api/takes/{take}/again", json={"changes": changes})
            seed, lens, method = answer.json()["takes"]
            assert seed["asked"]["seed"] == 7
            whole = await studio.client.get(f"/api/takes/{seed['take']}")
            assert whole.json()["asked"]["project"] == project
            assert lens["asked"]["path"]["lens"]["hfov"] == 90
            assert lens["asked"]["path"]["moves"] == ORBIT["moves"]
            assert method["asked"]["adapter"] == "none"
            assert {row["again"] for row in (seed, lens, method)} == {take}
            odd = await studio.client.post(f"/api/takes/{take}/again", json={"changes": [{"surprise": 1}]})
            assert odd.status_code == 400
            await studio.until(method["take"], "finished")

    asyncio.run(run())


async def heard(stream: Any, until: str) -> list[tuple[str, str, dict]]:
    """(id, event, data) of a stream, up to the first event of a name."""
    events = []
    async for part in stream:
        for block in part.decode().split("\n\n"):
            lines = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
            if lines:
                events.append((lines["id"], lines["event"], json.loads(lines["data"])))
                if lines["event"] == until or lines["data"].find(f'"state": "{until}"') > 0:
                    return events
    return events


def test_events_tell_every_step_and_a_page_that_was_away_is_told_what_it_missed(tmp_path):
    async def run() -> None:
        async with Running(tmp_path) as running:
            hub = running.studio.hub
            stream = hub.listen(None, {"worker": {}})
            take = await running.film("quick")
            events = await asyncio.wait_for(heard(stream, "finished"), PATIENCE)
            assert events[0][1] == "hello"
            assert [data["step"] for _, event, data in events if event == "step"] == [1, 2, 3]
            assert events[-1][2]["take"] == take
            middle = next(i for i, (_, event, _) in enumerate(events) if event == "step")
            resumed = await asyncio.wait_for(heard(hub.listen(events[middle][0], {}), "finished"), PATIENCE)
            assert resumed[0][2]["resumed"]
            assert resumed[1:] == events[middle + 1 :]
            for odd in ("", "x", "00000000-1", f"{hub.boot}-99999", f"{hub.boot}-{'9' * 40}", f"{hub.boot}--1"):
                hello = await anext(hub.listen(odd, {}))
                assert b'"resumed": false' in hello, odd

    asyncio.run(run())


def test_streams_are_bounded_and_a_page_that_does_not_read_is_let_go(tmp_path):
    async def run() -> None:
        async with Running(tmp_path) as running:
            hub = running.studio.hub
            streams = [hub.listen(None, {}) for _ in range(MOST_LISTENERS)]
            assert (await running.client.get("/api/events")).status_code == 503
            for number in range(2000):
                hub.tell("step", {"number": number})
            assert not hub.listeners
            assert len(hub.kept) <= 500
            with pytest.raises(StopAsyncIteration):
                await anext(streams[0])

    asyncio.run(run())
