"""Distances along rays: what a token believes, what a map says, what a mistake costs.

In: distances in metres, or predictions of a network. Out: `RadialInterval` per token, masks, a loss. It knows cameras
and the encoding's breakpoints; it may not know which network predicts or who trains it.
"""
