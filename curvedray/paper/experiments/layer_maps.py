"""Predicted radial maps by block: the shared radial head on every block's features."""

from curvedray.paper.experiment import Experiment, TestSet
from curvedray.paper.figures import Figure, layer_maps
from curvedray.paper.rows import CREPE

runner = Figure(
    Experiment(
        rows={"crepe": CREPE},
        tests={"": TestSet(most=3)},
        says="The head was trained on the curved blocks' features alone; elsewhere it reads what it was never shown.",
    ),
    layer_maps,
)
