"""Camera-controlled films through bent lenses: a prompt, a path and a lens in, with the radii that CRePE predicted."""

from curvedray.paper.experiment import Experiment, TestSet
from curvedray.paper.figures import Figure, film_strips
from curvedray.paper.rows import CREPE

runner = Figure(Experiment(rows={"crepe": CREPE}, tests={"": TestSet(family="non-pinhole", most=4)}), film_strips)
