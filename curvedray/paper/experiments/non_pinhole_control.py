"""Adherence to maps through lenses that bend: 48 scenes of PanShot, or non-pinhole clips of the world."""

from curvedray.paper.experiment import Claim, Experiment, TestSet
from curvedray.paper.rows import mix, others
from curvedray.paper.run import Table

COLUMNS = ("AbsRel", "delta_1", "Scale Jitter")
runner = Table(
    Experiment(
        rows={**others("VACE", "OmniVDiff"), "no map": mix(), "crepe-mix": mix(map="exact")},
        tests={"": TestSet(family="non-pinhole", most=48)},
        columns=tuple(f"{name} ({level})" for level in ("pixel", "token") for name in COLUMNS),
        baseline="crepe-mix",
        claims=tuple(Claim("crepe-mix", "no map", f"{name} (token)") for name in COLUMNS),
        judges={"wan": ("unik3d",)},
        maps=True,
    )
)
