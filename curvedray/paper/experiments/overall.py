"""Overall comparison, both subsets merged: panels A (pose, lens, orientation) to C, at what can be measured.

The rows are those of `lenses`, so whoever has run the one has trained and filmed the other.
"""

from curvedray.paper.experiment import Experiment
from curvedray.paper.rows import ALL_COLUMNS, CREPE, NONE, RECAMMASTER, UCPE
from curvedray.paper.run import Table

runner = Table(
    Experiment(
        rows={"none": NONE, "recammaster": RECAMMASTER, "ucpe": UCPE, "crepe": CREPE},
        stride_at_wan=1,
        columns=ALL_COLUMNS,
        baseline="ucpe",
        pairs=(("crepe", "ucpe"), ("crepe", "recammaster"), ("ucpe", "recammaster")),
    )
)
