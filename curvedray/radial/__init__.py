"""Distances along rays: intervals that a network predicts, maps that somebody supplies, and the loss between them.

In: distances in metres, other programs' depth files, or predictions of a network. Out: `RadialMap`s, a `RadialInterval`
per token, masks, a loss. It knows cameras, files and the encoding's breakpoints; it may not know which network predicts
or who trains it.
"""
