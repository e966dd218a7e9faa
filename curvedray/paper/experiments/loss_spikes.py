"""The radial loss and its floor: gradient norms of two trainings that differ in the least s alone."""

from curvedray.paper.experiment import Experiment, Row
from curvedray.paper.training_logs import LogTable

runner = LogTable(
    Experiment(
        rows={
            "s >= 0.001": Row({"radial_floor": 1e-3, "radial_weight": 1e-2}, budget="tenth"),
            "s >= 0.1": Row({"radial_floor": 0.1, "radial_weight": 1e-2}, budget="tenth"),
        },
        says="The loss divides by s. The paper's least s is 1e-3 near distances; where a token's sigma passes zero on "
        "its way down from 3, its gradient is a thousand times its neighbours'. Both rows have ten times the "
        "paper's weight.",
    )
)
