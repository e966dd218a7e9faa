"""Radial distance in each block of the backbone: a probe per block, its curve beside the curved window."""

from curvedray.paper.probing import Probe

runner = Probe()
