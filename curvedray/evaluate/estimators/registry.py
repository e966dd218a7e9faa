"""Estimators by name, made only when asked for, so that what one needs is not needed by the others."""

from collections.abc import Sequence
from pathlib import Path

from curvedray.errors import InputError
from curvedray.evaluate.estimators.protocol import Estimator
from curvedray.inputs import parsed_json
from curvedray.media.video import read_notes

NAMES = {
    "colmap": "poses by structure from motion, the lens known and fixed; CPU, no weights",
    "oracle": "poses you already have: camera files in --recovered, named as the videos are",
    "embedded": "poses, lens and distances in clips of the procedural world, by the package's own small network",
    "vipe": "poses by NVIDIA ViPE, out of process, or its results in --recovered",
    "geocalib": "lens and horizon by GeoCalib, on the video and on --reference",
    "unik3d": "distances by UniK3D (non-commercial licence), against --radial",
    "unidepth": "distances by UniDepthV2 (non-commercial licence), against --radial",
    "depth-anything": "distances by Depth Anything V2 (small weights, Apache-2.0), against --radial",
}


# The stride of scores unless one says otherwise: the paper's for GeoCalib, and what the embedded one looks at.
STRIDES = {"geocalib": 4, "embedded": 4}
RECOVERED = ("oracle", "vipe")  # estimators that read poses recovered before


def usual_stride(name: str) -> int:
    """At which frames an estimator's answers are scored unless one says otherwise: all, or every 4th."""
    return STRIDES.get(name, 1)


def choose_estimator(videos: Sequence[Path], recovered: bool = False) -> str:
    """Who can judge these videos: the embedded estimator where all are the embedded model's own, else COLMAP."""
    if recovered:
        raise InputError("--recovered", f"with --estimator {' or '.join(RECOVERED)}", "no estimator named")
    told = {_of_the_embedded_model(video) for video in videos} - {None}
    return "embedded" if told == {True} else "colmap"


def _of_the_embedded_model(video: Path) -> bool | None:
    """Whether a video says so: `curvedray generate` notes its recipe in the file, and the demo its model.

    None for a file that cannot be read: it will fail whoever reads it, and must not decide for the others.
    """
    try:
        notes = read_notes(video)
        recipe = parsed_json(notes.get("recipe", "{}"), str(video))
    except InputError:
        return None
    model = recipe.get("model") if isinstance(recipe, dict) else None
    return model == "" or "embedded" in (model, notes.get("model"))


def make_estimator(
    name: str,
    recovered: Path | None = None,
    command: str = "vipe",
    accept_noncommercial: bool = False,
    weights: str | None = None,
) -> Estimator:
    """The named estimator, or one sentence on what it still needs."""
    if recovered is not None and name in NAMES and name not in RECOVERED:
        raise InputError("--recovered", f"an estimator that reads it ({' or '.join(RECOVERED)})", name)
    if name == "colmap":
        from curvedray.evaluate.estimators.colmap import Colmap

        return Colmap()
    if name == "oracle":
        from curvedray.evaluate.estimators.oracle import Oracle

        if recovered is None:
            raise InputError(
                "estimator oracle", "a folder of camera files with the recovered poses", "none", "Add --recovered DIR."
            )
        return Oracle.from_folder(recovered)
    if name == "embedded":
        from curvedray.evaluate.estimators.embedded import WEIGHTS, Embedded

        return Embedded.load(WEIGHTS)
    if name == "vipe":
        from curvedray.evaluate.estimators.vipe import Vipe

        return Vipe.from_results(recovered) if recovered else Vipe.from_command(command)
    if name == "geocalib":
        from curvedray.evaluate.estimators.geocalib import GeoCalib

        return GeoCalib.load()
    if name == "unik3d":
        from curvedray.evaluate.estimators.unik3d import UniK3D

        return UniK3D.load(accept_noncommercial)
    if name == "unidepth":
        from curvedray.evaluate.estimators import unidepth

        return unidepth.load_unidepth(accept_noncommercial, weights or unidepth.WEIGHTS)
    if name == "depth-anything":
        from curvedray.evaluate.estimators import depth_anything

        return depth_anything.load_depth_anything(weights or depth_anything.WEIGHTS)
    raise InputError("estimator", " or ".join(NAMES), name)
