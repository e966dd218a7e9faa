"""The formulas in plain float64 loops, slow and obvious: what the tests compare the package with."""

import math
from itertools import pairwise

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


# ---------------------------------------------------------------------------------------------- encoding
# Curved-ray expected RoPE as the paper writes it, one token, one ray, one frequency at a time.


def quotient_phasor(thetas):
    """The paper's segment quotients, averaged; below 1e-6, where they cancel, their limit at the middle."""
    cosine = sine = 0.0
    for a, b in pairwise(thetas):
        long = abs(b - a) > 1e-6
        cosine += (math.sin(b) - math.sin(a)) / (b - a) if long else math.cos((a + b) / 2)
        sine += (math.cos(a) - math.cos(b)) / (b - a) if long else math.sin((a + b) / 2)
    return cosine / (len(thetas) - 1), sine / (len(thetas) - 1)


def bounded_coordinate(point, focal, size, xi):
    """(u, v, range): the paper's (u/beta, v/beta, 1) at unit length, multiplied out by beta so that it never flips."""
    x, y, z = point
    distance = math.sqrt(x * x + y * y + z * z)
    direction = (focal[0] / size[0] * x, focal[1] / size[1] * y, z + xi * distance)
    length = math.sqrt(sum(i * i for i in direction))
    return (direction[0] / length, direction[1] / length, distance) if length else (0.0, 0.0, distance)


def token_phasors(rays, radii, query_from_source, focal, size, xi, frequencies):
    """All phasors of one key token in the eyes of one query camera, in the order (ray, coordinate, frequency)."""
    out = []
    for ray in rays:
        path = []
        for radius in radii:
            point = [
                sum(query_from_source[i][j] * radius * ray[j] for j in range(3)) + query_from_source[i][3]
                for i in range(3)
            ]
            path.append(bounded_coordinate(point, focal, size, xi))
        for coordinate, row in enumerate(frequencies):
            out += [quotient_phasor([omega * step[coordinate] for step in path]) for omega in row]
    return out


def softmax_attention(q, keys, values):
    """One query's answer: scores over sqrt(d), softmax, mean of values."""
    scores = [sum(a * b for a, b in zip(q, key, strict=True)) / math.sqrt(len(q)) for key in keys]
    weights = [math.exp(score - max(scores)) for score in scores]
    total = sum(weights)
    return [sum(w * v[c] for w, v in zip(weights, values, strict=True)) / total for c in range(len(values[0]))]
