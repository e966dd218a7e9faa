"""External radial maps, qualitatively: the source, its map, and what each method makes of it."""

from curvedray.paper.experiment import Experiment, TestSet
from curvedray.paper.figures import Figure, map_strips
from curvedray.paper.rows import mix, others

runner = Figure(
    Experiment(
        rows={
            **others("OmniVDiff", "VACE"),
            "no map": mix(),
            "depth_concat-mix": mix("depth_concat", map="exact"),
            "crepe-mix": mix(map="exact"),
        },
        tests={"": TestSet(place="davis", least_known=0.5, most=4)},
    ),
    map_strips,
)
