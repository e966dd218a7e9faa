"""Beyond the paper: guidance towards the camera, which the adapter gives for free, as without it the backbone runs."""

from curvedray.paper.experiment import Claim, Experiment, Row
from curvedray.paper.run import Table

SCALES = (1.0, 2.0, 3.0, 4.0)
runner = Table(
    Experiment(
        rows={f"guidance {g:g}": Row(filming={"camera_guidance": g}) for g in SCALES},
        columns=("FoV", "k1", "Words", "FVD (estimator)", "CamMC", "RotErr", "TransErr"),
        baseline="guidance 1",
        claims=tuple(
            Claim(f"guidance {g:g}", "guidance 1", metric) for g in SCALES[1:] for metric in ("Rotation", "CamMC")
        ),
        says="One adapter, trained once; 1 is no guidance. Claims here are ours, not the paper's.",
    )
)
