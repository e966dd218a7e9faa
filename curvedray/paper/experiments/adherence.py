"""Does a video have the distances it was given? CRePE with MixForcing, and who else takes a map."""

from curvedray.paper.experiment import Claim, Experiment, TestSet
from curvedray.paper.rows import mix, others
from curvedray.paper.run import Table

DESK = ("embedded", "tiny")
COLUMNS = ("SILog", "AbsRel", "delta_1", "Scale Jitter")
runner = Table(
    Experiment(
        rows={
            **others("ControlVideo", "Ctrl-Adapter", "Make-Your-Video", "OmniVDiff", "VACE"),
            "no map": mix(),
            "depth_concat-mix": mix("depth_concat", map="exact"),
            "crepe-mix (noisy map)": mix(map="noisy", scales=DESK),
            "crepe-mix": mix(map="exact"),
        },
        tests={"": TestSet(place="davis", least_known=0.5, most=96)},
        columns=tuple(f"{name} ({level})" for level in ("pixel", "token") for name in COLUMNS),
        baseline="crepe-mix",
        claims=tuple(
            Claim("crepe-mix", other, metric)
            for other in ("no map", "depth_concat-mix")
            for metric in (*(f"{name} (token)" for name in COLUMNS), "Flow loss")
        ),
        judges={"wan": ("unik3d",)},
        maps=True,
        says="At the embedded scale the sources are clips of the world: their captions, cameras and exact maps. `no "
        "map` is the same adapter with its own prediction, `noisy map` has noise of 0.3 in the logarithm of every "
        "token. The paper has another estimator's maps in its place: `crepe-mix (UniDepthV2)`.",
    )
)
