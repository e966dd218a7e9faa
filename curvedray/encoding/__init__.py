"""Positional encodings of cameras: curved rays (the paper's), and the relative encodings it is compared with.

In: queries, keys, values, cameras, a token grid, an interval of log radius per token. Out: what attention gives.
It knows cameras and torch; it may not know adapters, models or where radii come from.
"""
