"""Estimators by name, made only when asked for, so that what one needs is not needed by the others."""

from pathlib import Path

from curvedray.errors import InputError
from curvedray.evaluate.estimators.protocol import Estimator

NAMES = {
    "colmap": "poses by structure from motion, the lens known and fixed; CPU, no weights",
    "oracle": "poses you already have: camera files in --recovered, named as the videos are",
    "embedded": "poses, lens and distances in clips of the procedural world, by the package's own small network",
    "vipe": "poses by NVIDIA ViPE, out of process, or its results in --recovered",
    "geocalib": "lens and horizon by GeoCalib, on the video and on --reference",
    "unik3d": "distances by UniK3D (non-commercial licence), against --radial",
}


def make_estimator(
    name: str, recovered: Path | None = None, command: str = "vipe", accept_noncommercial: bool = False
) -> Estimator:
    """The named estimator, or one sentence on what it still needs."""
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
    raise InputError("estimator", " or ".join(NAMES), name)
