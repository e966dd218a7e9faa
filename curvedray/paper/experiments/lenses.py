"""Pinhole and non-pinhole comparison: the backbone alone, ReCamMaster, UCPE and CRePE, trained alike."""

from curvedray.paper.experiment import Experiment
from curvedray.paper.rows import ALL_COLUMNS, CREPE, NONE, RECAMMASTER, UCPE
from curvedray.paper.run import Table

runner = Table(
    Experiment(
        rows={"none": NONE, "recammaster": RECAMMASTER, "ucpe": UCPE, "crepe": CREPE},
        stride_at_wan=1,
        columns=ALL_COLUMNS,
        by_lens=True,
        baseline="ucpe",
        pairs=(("crepe", "ucpe"), ("crepe", "recammaster"), ("ucpe", "recammaster")),
    )
)
