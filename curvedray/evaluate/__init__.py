"""Does it obey the camera? Metrics, one family a file; estimators; tables and a page that a stranger can read."""

from curvedray.evaluate.metrics.pose import PoseErrors, pose_errors
from curvedray.evaluate.scores import Failure, Metric, Score, group_by
from curvedray.evaluate.statistics import Interval, average_rank, bootstrap, paired_difference

__all__ = [
    "Failure",
    "Interval",
    "Metric",
    "PoseErrors",
    "Score",
    "average_rank",
    "bootstrap",
    "group_by",
    "paired_difference",
    "pose_errors",
]
