"""Do videos look real, steady, and like their captions? Features of public networks, and the scores made of them.

In: videos, reference videos, captions, and the networks' weights, which stay the user's. Out: FVD, FVD-C, FID, IS, CLIP
scores, LPIPS and VBench. The networks run in a process of their own (`worker.py`), in any environment that has them,
because they need torchvision and pins that clash with ours; nothing here imports them.
"""

from curvedray.evaluate.quality.extractors import EXTRACTORS, METRIC_NAMES, Extractor
from curvedray.evaluate.quality.measure import Quality, Request, measure_quality

__all__ = ["EXTRACTORS", "METRIC_NAMES", "Extractor", "Quality", "Request", "measure_quality"]
