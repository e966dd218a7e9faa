"""Projects are files, saved whole; and the contract's page names every call that there is."""

import re
from pathlib import Path

import pytest
from starlette.routing import Route

import curvedray.app
from curvedray.app.routes import routes

API = Path(curvedray.app.__file__).with_name("API.md")
PROJECT = {"studio": 1, "path": {"moves": "orbit left 40deg"}, "deep": [[[1.5]]], "text": "ä ✓"}


def test_a_project_is_saved_listed_opened_and_removed(ask, studio):
    saved = ask("PUT", "/api/projects/first%20try", PROJECT)
    assert saved.status_code == 200
    assert ask.get("/api/projects/first%20try").json() == PROJECT
    assert [row["name"] for row in ask.get("/api/projects").json()["projects"]] == ["first try"]
    assert (studio.folder / "projects" / "first try.json").is_file()
    assert ask("DELETE", "/api/projects/first%20try").json() == {"removed": True}
    assert ask.get("/api/projects/first%20try").status_code == 404


@pytest.mark.parametrize("name", ["..", "a%2fb", "%2e%2e%2fx", ".hidden", "x" * 65, "a.b", "a%0a", "a%00", "%20", "ä"])
def test_a_projects_name_stays_in_its_folder(ask, studio, name):
    assert ask("PUT", f"/api/projects/{name}", PROJECT).status_code in (400, 404, 405)
    assert not studio.folder.exists() or not list(studio.folder.rglob("*.json"))


@pytest.mark.parametrize("project", [{}, {"studio": 2}, {"studio": "1"}, [], {"studio": 1, "x": "y" * 10**6}])
def test_what_is_no_project_is_refused(ask, project):
    assert ask("PUT", "/api/projects/a", project).status_code in (400, 413)


def test_a_damaged_project_is_said_to_be_one(ask, studio):
    (studio.folder / "projects").mkdir(parents=True)
    (studio.folder / "projects" / "a.json").write_text("{")
    assert ask.get("/api/projects/a").status_code == 422


def test_the_contract_names_every_call_and_no_other(studio):
    """`### POST /api/takes/TAKE/again` in the page is the route /api/takes/{take}/again."""
    named = set()
    for line in re.findall(r"^### (.*)$", API.read_text(), re.MULTILINE):
        for method, path in re.findall(r"(GET|POST|PUT|DELETE) (/api/[^\s,?]*)", line):
            named.add((method, re.sub(r"[A-Z]{4,}", "{}", path)))
    there = set()
    for route in routes(studio):
        assert isinstance(route, Route)
        for method in (route.methods or set()) - {"HEAD"}:
            there.add((method, re.sub(r"\{[^}]*\}", "{}", route.path)))
    assert named == {(method, path) for method, path in there if path != "/api/{}"}
