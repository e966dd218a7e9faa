"""Does a video obey its camera? Metrics, estimators, statistics, tables and a page.

In: videos, the cameras they were asked for, and an estimator that recovers the cameras they show. Out: scores per clip,
means with intervals, a report; and, from estimators of distance, labels to train on. Nothing here knows how a video
was made; `known` and the `embedded` estimator alone know the procedural world, whose truth is exact.
"""

from curvedray.evaluate.metrics.pose import PoseErrors, pose_errors
from curvedray.evaluate.scores import Failure, Metric, Score, group_by
from curvedray.evaluate.statistics import (
    Interval,
    Spread,
    average_rank,
    bootstrap,
    bootstrap_seeds,
    paired_difference,
    paired_difference_of_seeds,
)

__all__ = [
    "Failure",
    "Interval",
    "Metric",
    "PoseErrors",
    "Score",
    "Spread",
    "average_rank",
    "bootstrap",
    "bootstrap_seeds",
    "group_by",
    "paired_difference",
    "paired_difference_of_seeds",
    "pose_errors",
]
