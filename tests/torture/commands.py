"""What is attacked through the command line: options, moves, lenses, sizes, overrides, folders to evaluate.

Commands run in this process through `main`, with what they print caught. Leaving with an exit code is an answer.
"""

import contextlib
import io
import json
import shutil
import sys
from pathlib import Path
from random import Random

from torture import mutate
from torture.files import Target, good_cameras, good_frames

MOVES = ["orbit left 40deg, then dolly in 0.5", "pan right 30deg smooth and truck left 1.2m", "static", "zoom in 2x"]
MOVES += ["(pan left 20deg and tilt up 5deg), then hold for 3", "orbit right 90deg radius 2 linear", "roll cw 20deg"]
LENSES = ["pinhole-90", "fisheye-150", "wide-110", "kitti360", "gopro-wide", "fisheye-100@0.5"]
OPTIONS = ["unit=near", "fps=24", "near_depth=2.0", "mirrored_world=True", "index=0", "size=(64, 48)"]
OVERRIDES = ["steps=500", "adapter.breakpoints=3", "adapter.heads=2", "every.checkpoint=2", "mixforcing.kind=block"]
OVERRIDES += ["data.frames=9", "lr=1e-3", "mixforcing.sigma=0.1", "adapter.method=crepe", "data.cache=off", "batch=2"]


def command(*words: str) -> None:
    """Run `curvedray words...`; an exit code is an answer, and where it is not 0, so is an InputError."""
    from curvedray.cli import main
    from curvedray.errors import InputError

    before, sys.argv = sys.argv, ["curvedray", *words]
    out, err, code = io.StringIO(), io.StringIO(), None
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as leaving:
        code = leaving.code
    finally:
        sys.argv = before
    said = out.getvalue() + err.getvalue()
    if code in (1, 2):
        raise InputError("curvedray", "a good command", said.strip()[-300:])
    assert code in (0, None), f"exit code {code}"


class Making:
    """`cameras make` and `cameras describe` with moves, lenses, sizes and numbers of frames."""

    name, share = "moves, lenses and sizes", 10

    def __init__(self, folder: Path) -> None:
        command("cameras", "make", MOVES[0], "made.json", "--frames", "9", "--size", "96x64", "--near", "2")

    def attack(self, chance: Random) -> None:
        words = {"move": chance.choice(MOVES), "--lens": chance.choice(LENSES), "--size": "96x64", "--frames": "9"}
        words |= {"--near": "2"} if chance.random() < 0.3 else {}
        odd = chance.choice([*words, "move", "--lens"])
        words[odd] = mutate.odd_text(words[odd], chance)
        if odd in ("--size", "--frames", "--near") and chance.random() < 0.5:
            words[odd] = chance.choice(["-1", "0", "1e9", "nan", "٣", "1" * 5000, "64x", "x", "64x48x3", "5", "1"])
        move = words.pop("move")
        command("cameras", "make", *[i for pair in words.items() for i in pair], "--", move, "made.json")


class ReaderOptions:
    """`cameras convert` and `preview` with `--option`, `--format`, `--size` and `--lens`."""

    name, share = "reader options", 6

    def __init__(self, folder: Path) -> None:
        from curvedray.errors import InputError
        from curvedray.formats import FORMATS, write_cameras

        self.files: list[str] = []
        for name, one in FORMATS.items():
            path = folder / f"{name}{(one.extensions or ('',))[0]}"
            with contextlib.suppress(InputError):
                write_cameras(good_cameras(), path, name)
                self.files.append(path.name)
        command("cameras", "convert", self.files[0], "converted.json", "--option", "unit=metric", "--size", "64x48")

    def attack(self, chance: Random) -> None:
        words = [chance.choice(self.files), "converted.json"]
        for _ in range(chance.randint(1, 2)):
            said = chance.choice(OPTIONS)
            words += ["--option", mutate.odd_text(said, chance) if chance.random() < 0.8 else said]
        for option, good in (("--lens", "pinhole-90"), ("--size", "64x48"), ("--from", "tum")):
            if chance.random() < 0.3:
                words += [option, mutate.odd_text(good, chance) if chance.random() < 0.5 else good]
        command("cameras", "convert", *words)


class Overrides:
    """Recipes of training, changed by overrides."""

    name, share = "overrides", 8

    def __init__(self, folder: Path) -> None:
        from curvedray.training.recipes import recipe, recipe_names

        self.recipes = [recipe(name) for name in recipe_names()]

    def attack(self, chance: Random) -> None:
        from curvedray.training.recipe import with_overrides

        chosen = [chance.choice(OVERRIDES) for _ in range(chance.randint(1, 3))]
        if chance.random() < 0.5:
            key, _, _ = chosen[0].partition("=")
            value = json.dumps(chance.choice(mutate.VALUES))
            chosen[0] = f"{key}={value}"
        else:
            chosen[0] = mutate.odd_text(chosen[0], chance)
        with_overrides(chance.choice(self.recipes), chosen)


class Training:
    """`train --dry-run` with overrides that pass: what a recipe would take is worked out, whatever it asks for."""

    name, share = "train --dry-run", 1

    def __init__(self, folder: Path) -> None:
        command("train", "quick", "steps=3", "--dry-run", "--json")

    def attack(self, chance: Random) -> None:
        override = chance.choice(OVERRIDES)
        key = override.partition("=")[0]
        values = [json.dumps(value) for value in mutate.VALUES] + [override.partition("=")[2]]
        command("train", "quick", f"{key}={chance.choice(values)}", "--dry-run", "--json")


class Generating:
    """`generate --dry-run` with every option that takes a number or a word."""

    name, share = "generate --dry-run", 1

    def __init__(self, folder: Path) -> None:
        command("generate", "a red ball", "--move", "static", "--dry-run", "--model", "random", "--adapter", "none")

    def attack(self, chance: Random) -> None:
        good = {"--move": "orbit left", "--lens": "pinhole-70", "--near": "2", "--steps": "4", "--guidance": "2"}
        good |= {"--camera-guidance": "2", "--shift": "3", "--frames": "9", "--size": "96x64", "--zoom": "2"}
        good |= {
            "--seed": "1",
            "--sampler": "euler",
            "--dtype": "float32",
            "--device": "cpu",
            "--negative": "x",
            "--adapter": "none",
        }
        option = chance.choice(list(good))
        odd = ["-1", "0", "nan", "inf", "1e9", "1e308", "9" * 400, "x", "", "٣", "-0", "1e-320", "banana"]
        value = chance.choice(odd) if chance.random() < 0.6 else mutate.odd_text(good[option], chance)
        prompt = "a red ball in a desert courtyard" if chance.random() < 0.8 else mutate.odd_text("a red ball", chance)
        words = {"--move": "static", "--frames": "5", "--model": "random", "--adapter": "none", option: value}
        command("generate", "--dry-run", *[i for pair in words.items() for i in pair], "--", prompt)


class Evaluating:
    """`evaluate` on a folder where one entry is bad: a video, a camera file, a saved result, a name, a link."""

    name, share = "evaluate", 1

    def __init__(self, folder: Path) -> None:
        from curvedray.formats import write_cameras
        from curvedray.media.video import write_video

        self.folder, self.cameras = folder / "videos", folder / "cameras"
        for name in "ab":
            write_video(good_frames(), self.folder / f"{name}.mp4", 8.0)
            write_cameras(good_cameras(), self.cameras / f"{name}.json")
        self._run()
        self.saved = {path: path.read_bytes() for path in Path("report/clips").glob("*.json")}

    def _run(self, *more: str) -> None:
        words = ("--cameras", "cameras", "--estimator", "oracle", "--recovered", "cameras", "-o", "report")
        command("evaluate", "videos", *words, *more)

    def attack(self, chance: Random) -> None:
        for path, content in self.saved.items():
            path.write_bytes(content)
        kind = chance.randrange(5)
        good = chance.choice([*sorted(self.folder.iterdir()), *sorted(self.cameras.iterdir()), *self.saved])
        content, bad = good.read_bytes(), good
        try:
            if kind <= 1:
                is_json = good.suffix == ".json" and chance.random() < 0.7
                good.write_bytes(
                    mutate.odd_json(json.loads(content), chance) if is_json else mutate.damaged(content, chance)
                )
            elif kind == 2:
                names = ["c.mp4", "é[bold]\x1b[31m.mp4", "\udcff.mp4", "a" * 250 + ".mp4", ".x.mp4"]
                bad = self.folder / chance.choice(names)
                bad.write_bytes(mutate.damaged(content, chance))
            elif kind == 3:
                bad = self.folder / "link.mp4"
                bad.symlink_to(chance.choice(["nowhere", "link.mp4", "/dev/zero", ".."]))
            else:
                bad = self.folder / "folder.mp4"
                bad.mkdir()
            self._run(*(["--stride", chance.choice(["0", "1", "2", "100", "x"])] if chance.random() < 0.2 else []))
        finally:
            if bad != good:
                shutil.rmtree(bad) if bad.is_dir() and not bad.is_symlink() else bad.unlink(missing_ok=True)
            good.write_bytes(content)


ATTACKED_COMMANDS: tuple[type[Target], ...] = (Making, ReaderOptions, Overrides, Training, Generating, Evaluating)
