"""Predicted radial maps during denoising: the middle curved block's, from the first step to the last."""

from curvedray.paper.experiment import Experiment, TestSet
from curvedray.paper.figures import Figure, denoising_maps
from curvedray.paper.rows import CREPE

runner = Figure(Experiment(rows={"crepe": CREPE}, tests={"": TestSet(most=3)}), denoising_maps)
