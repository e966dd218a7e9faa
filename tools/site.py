"""What mkdocs needs beyond docs/: a reference page per room of the package, and the results that the guides link to."""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "curvedray"
OUTSIDE = re.compile(r"\]\(\.\./([^)#]+)")  # a link to a file of the repository that is not a page of docs/
FENCE = re.compile(r"^```(sh|python) .*$", re.MULTILINE)  # ```sh needs-wan: for the tests, not for highlighting


def rooms() -> dict[str, list[str]]:
    """room -> its public modules, dotted."""
    found = {}
    for folder in sorted(path.parent for path in PACKAGE.glob("*/__init__.py")):
        files = sorted(path for path in folder.rglob("*.py") if not path.stem.startswith("_"))
        names = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in files]
        found[folder.name] = [f"curvedray.{folder.name}", *names]
    return found


def on_config(config: Any) -> Any:
    named = set(re.findall(r"[\w/]+\.md", repr(config.nav)))
    config.nav += [page for page in sorted(path.name for path in (ROOT / "docs").glob("*.md")) if page not in named]
    pages = [{room: f"reference/{room}.md"} for room in rooms() if room != "cli"]
    config.nav.append({"Reference": [{"Public names": "reference/index.md"}, *pages]})
    return config


def on_files(files: Files, config: Any) -> Files:
    import curvedray

    where = {name: f"{module}.{name}" for name, module in curvedray._LATER.items()}
    public = "# Public names\n\nWhat `import curvedray` gives.\n\n"
    pages = {"index": public + "\n\n".join(f"::: {where[name]}" for name in curvedray.__all__)}
    for room, modules in rooms().items():
        pages[room] = f"# {room}\n\n" + "\n\n".join(f"::: {module}" for module in modules)
    del pages["cli"]
    for name, text in pages.items():
        files.append(File.generated(config, f"reference/{name}.md", content=text))
    for page in list(files.documentation_pages()):
        for target in OUTSIDE.findall(page.content_string):
            uri = f"repository/{target}"
            if (ROOT / target).is_file() and files.get_file_from_path(uri) is None:
                files.append(File.generated(config, uri, abs_src_path=str(ROOT / target)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    return FENCE.sub(r"```\1", OUTSIDE.sub(r"](repository/\1", markdown))
