"""With and without radial supervision, for a tenth of the steps and for all of them."""

from curvedray.paper.experiment import Experiment, Row
from curvedray.paper.rows import CREPE, UNSUPERVISED
from curvedray.paper.run import Table

runner = Table(
    Experiment(
        rows={
            "1K without": Row(UNSUPERVISED, budget="tenth"),
            "1K with": Row(budget="tenth"),
            "10K without": Row(UNSUPERVISED),
            "10K with": CREPE,
        },
        stride_at_wan=1,
        columns=("CamMC", "RotErr", "Gravity", "SSI-L1"),
        baseline="10K without",
        pairs=(("1K without", "1K with"), ("10K with", "10K without"), ("1K without", "10K without")),
        radii=True,
        judges={"wan": ("vipe", "geocalib", "unik3d")},
        says="1K is a tenth of the full budget, whatever that is at this scale.",
    )
)
