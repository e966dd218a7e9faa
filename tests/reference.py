"""The formulas in plain float64 loops, slow and obvious: what the tests compare the package with."""

import math

# ---------------------------------------------------------------------------------------------- cameras
# UCM, one point or pixel at a time. None where the lens has no answer.


def ucm_project(point, focal, center, xi):
    """u = fx X / (Z + xi |X|) + cx, for the points that the lens sees: Z > -min(xi, 1/xi) |X|."""
    x, y, z = point
    distance = math.sqrt(x * x + y * y + z * z)
    edge = xi if xi <= 1 else 1 / xi
    if not z > -edge * distance:
        return None
    beta = z + xi * distance
    return focal[0] * x / beta + center[0], focal[1] * y / beta + center[1]


def ucm_unproject(pixel, focal, center, xi):
    """The unit ray: lift the pixel onto the unit sphere and step back by xi."""
    x, y = (pixel[0] - center[0]) / focal[0], (pixel[1] - center[1]) / focal[1]
    square = x * x + y * y
    if xi > 1 and square > 1 / (xi * xi - 1):
        return None
    lift = (xi + math.sqrt(1 + (1 - xi * xi) * square)) / (1 + square)
    return lift * x, lift * y, lift - xi
