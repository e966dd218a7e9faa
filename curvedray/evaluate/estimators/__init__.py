"""Who says where the camera was? One protocol for every estimator, each naming its version and its floor.

The floor is the error that the estimator itself makes on clips whose cameras are known exactly: a score below it
means nothing.
"""

from curvedray.evaluate.estimators.protocol import Estimate, Estimator, UpAndLens
from curvedray.evaluate.estimators.registry import NAMES, choose_estimator, make_estimator, usual_stride

__all__ = ["NAMES", "Estimate", "Estimator", "UpAndLens", "choose_estimator", "make_estimator", "usual_stride"]
