"""Matched prompts and paths: ReCamMaster, UCPE and CRePE from the same noise."""

from curvedray.paper.experiment import Experiment, TestSet
from curvedray.paper.figures import Figure, film_strips
from curvedray.paper.rows import CREPE, RECAMMASTER, UCPE

runner = Figure(
    Experiment(
        rows={"recammaster": RECAMMASTER, "ucpe": UCPE, "crepe": CREPE},
        tests={"": TestSet(family="non-pinhole", most=4)},
    ),
    film_strips,
)
