"""Pinhole and non-pinhole comparison: the backbone alone, ReCamMaster, UCPE and CRePE, trained alike.

curvedray paper run lenses --scale embedded -o runs/lenses
"""

from dataclasses import replace

from curvedray.paper.experiment import Experiment
from curvedray.training.recipes import recipe

base = recipe("embedded")
experiment = Experiment(
    rows={
        method: replace(base, name=method, adapter=replace(base.adapter, method=method))
        for method in ("none", "recammaster", "ucpe", "crepe")
    },
    by_lens=True,
    baseline="ucpe",
)
