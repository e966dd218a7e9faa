"""External radial-map control: one adapter, with its own radii and with a supplied map, through bent lenses."""

from curvedray.paper.experiment import Experiment, TestSet
from curvedray.paper.figures import Figure, map_strips
from curvedray.paper.rows import mix

runner = Figure(
    Experiment(
        rows={"no map": mix(), "crepe-mix": mix(map="exact")},
        tests={"": TestSet(family="non-pinhole", most=4)},
    ),
    map_strips,
)
