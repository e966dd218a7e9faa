"""Beyond the paper: queries turned too, then values; beside UCPE, and the phase of the far end of a ray alone."""

from curvedray.paper.experiment import Claim, Experiment, Row
from curvedray.paper.rows import CREPE, TURNED_QUERIES, TURNED_VALUES, UCPE, method
from curvedray.paper.run import Table

runner = Table(
    Experiment(
        rows={
            "ucpe": UCPE,
            "crepe": CREPE,
            "endpoint": method("endpoint"),
            "crepe, query": Row(TURNED_QUERIES),
            "crepe, query and value": Row(TURNED_VALUES),
        },
        columns=("CamMC", "RotErr", "Words", "FVD (estimator)", "TransErr", "FoV"),
        baseline="crepe",
        claims=tuple(
            Claim(name, "crepe", metric)
            for name in ("crepe, query", "crepe, query and value")
            for metric in ("Rotation", "CamMC", "Flow loss")
        ),
        says="Claims here are ours, not the paper's.",
    )
)
