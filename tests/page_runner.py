"""Runs one page's commands and examples in one process, so that torch is loaded once per page.

Standard input is JSON: [["sh", ["curvedray", ...]], ["python", "text"], ...]. The first that fails ends it, by name.
"""

import json
import shlex
import subprocess
import sys

from curvedray.cli import main


def command(words: list[str]) -> None:
    if words[0] == "python":
        subprocess.run([sys.executable, *words[1:]], check=True)
        return
    sys.argv = words
    try:
        main()
    except SystemExit as leaving:
        if leaving.code:
            sys.exit(f"exit code {leaving.code}: {shlex.join(words)}")


for kind, step in json.load(sys.stdin):
    if kind == "sh":
        command(step)
    else:
        exec(compile(step, "the page's example", "exec"), {"__name__": "__main__"})
