"""Beyond the paper: a query turned by its own pixel's phase, and values turned with their keys."""

from curvedray.paper.experiment import Claim, Experiment, Row
from curvedray.paper.rows import CREPE, UCPE
from curvedray.paper.run import Table

ROTATION = {"adapter.query_rotation": True}
runner = Table(
    Experiment(
        rows={
            "ucpe": UCPE,
            "crepe": CREPE,
            "crepe, query": Row(ROTATION),
            "crepe, query and value": Row({**ROTATION, "adapter.value_rotation": True}),
        },
        columns=("CamMC", "RotErr", "Rotation", "TransErr", "FoV"),
        baseline="crepe",
        claims=tuple(
            Claim(name, "crepe", metric)
            for name in ("crepe, query", "crepe, query and value")
            for metric in ("Rotation", "CamMC")
        ),
        says="Claims here are ours, not the paper's.",
    )
)
