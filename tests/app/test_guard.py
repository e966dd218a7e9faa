"""Nobody but the studio's own page is answered, and nothing larger than its bounds is read."""

import json

import pytest
from studio_client import BASE, COOKIE, ORBIT, PORT, TOKEN

from curvedray.app.limits import LARGEST_BODY, LARGEST_UPLOAD

JSON = {"content-type": "application/json"}


def test_the_token_becomes_a_strict_cookie_and_leaves_the_address(ask):
    entered = ask.get(f"/?token={TOKEN}", cookies={})
    assert entered.status_code == 303
    assert entered.headers["location"] == "/"
    assert "SameSite=Strict" in entered.headers["set-cookie"]
    assert "HttpOnly" in entered.headers["set-cookie"]
    page = ask.get("/")
    assert page.status_code == 200
    assert page.headers["content-security-policy"].startswith("default-src 'self'; ")
    assert "unsafe" not in page.headers["content-security-policy"]


@pytest.mark.parametrize(
    "path",
    ["/", "/?token=wrong", "/?token=", f"/?{21 * 'a=1&'}", "/index.html", "/api/start", "/api/events", "/api/no"],
)
@pytest.mark.parametrize("cookies", [{}, {f"curvedray-{PORT}": "wrong"}, {"curvedray-1": TOKEN}])
def test_without_the_token_nothing_is_answered(ask, path, cookies):
    answer = ask.get(path, cookies=cookies)
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    "host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1", "127.0.0.1:1", f"127.0.0.1.evil:{PORT}"]
)
def test_a_foreign_host_is_refused_even_with_the_token(ask, host):
    assert ask.get("/api/doctor", headers={"host": host}).status_code == 421
    assert ask.get(f"/?token={TOKEN}", headers={"host": host}).status_code == 421


@pytest.mark.parametrize("origin", ["null", "http://evil.example", f"https://127.0.0.1:{PORT}", "http://127.0.0.1:1"])
def test_a_foreign_origin_is_refused_even_with_the_cookie(ask, origin):
    assert ask.post("/api/path", ORBIT, headers={"origin": origin}).status_code == 403


def test_the_pages_own_origin_is_let_through(ask):
    headers = {"origin": BASE, "sec-fetch-site": "same-origin"}
    assert ask.post("/api/path", ORBIT, headers=headers).status_code == 200
    assert ask.post("/api/path", ORBIT, headers={"sec-fetch-site": "cross-site"}).status_code == 403


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_a_body_that_a_foreign_form_could_send_is_refused(ask, kind):
    answer = ask("POST", "/api/path", content=json.dumps(ORBIT), headers={"content-type": kind})
    assert answer.status_code == 415


def test_a_large_body_is_refused_by_its_claim_and_by_its_bytes(ask):
    large = b" " * (LARGEST_BODY + 1)
    assert ask("POST", "/api/path", content=large, headers=JSON).status_code == 413

    async def parts():
        for _ in range(30):
            yield b" " * 50_000

    assert ask("POST", "/api/path", content=parts(), headers=JSON).status_code == 413


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"moves": NaN}', b"\xff", b"[" * 100_000, b'{"moves": 1e999}'])
def test_what_is_no_request_is_one_sentence(ask, body):
    answer = ask("POST", "/api/path", content=body, headers=JSON)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["words"]


@pytest.mark.parametrize(
    "path",
    ["/../pyproject.toml", "/%2e%2e/API.md", "/..%2fserver.py", "/static/index.html", "//etc/passwd", "/.git/config"],
)
def test_nothing_outside_the_pages_folder_is_served(ask, path):
    assert ask.get(path).status_code in (400, 404)


@pytest.mark.parametrize("name", ["../x.json", "a/b.json", ".hidden", "", "x" * 300, "a\nb.json", "c:\\x.json"])
def test_an_uploads_name_stays_in_its_folder(ask, name, studio):
    from urllib.parse import quote

    headers = {"content-type": "application/octet-stream"}
    answer = ask("PUT", f"/api/uploads/cameras?name={quote(name)}", content=b"{}", headers=headers)
    assert answer.status_code == 422
    assert not list(studio.folder.glob("**/*.json"))


def test_an_upload_is_bounded_by_its_claim_and_by_its_bytes_and_leaves_nothing(ask, studio, monkeypatch):
    monkeypatch.setitem(LARGEST_UPLOAD, "cameras", 1000)
    headers = {"content-type": "application/octet-stream"}

    async def parts():
        for _ in range(30):
            yield b" " * 100

    for content in (b" " * 1001, parts()):
        assert ask("PUT", "/api/uploads/cameras?name=a.json", content=content, headers=headers).status_code == 413
    assert not [path for path in studio.folder.rglob("*") if path.is_file()]
    assert ask("PUT", "/api/uploads/paintings?name=a.json", content=b"x", headers=headers).status_code == 404


def test_an_upload_can_be_removed_and_no_other_folder_with_it(ask, studio):
    name = ask.upload("cameras", "a.json", b"{}")
    assert ask("DELETE", f"/api/uploads/{name}").status_code == 200
    assert ask("DELETE", f"/api/uploads/{name}").status_code == 404
    assert ask("DELETE", "/api/uploads/cameras").status_code == 404
    assert (studio.folder / "uploads" / "cameras").is_dir()


def test_unknown_calls_are_said_to_be_unknown(ask):
    assert ask.get("/api/nothing").status_code == 404
    assert ask.post("/api/nothing", {}).json()["error"]["words"] == "POST /api/nothing: no such call"
    assert COOKIE  # the cookie alone decides who asks
