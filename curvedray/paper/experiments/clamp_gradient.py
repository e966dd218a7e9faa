"""The gradient of a bounded interval: a plain clamp leaves tokens that can never come back."""

from curvedray.paper.checks import Check, clamp_gradient

runner = Check(clamp_gradient)
