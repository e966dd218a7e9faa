"""Distribution columns from features that the box has: the embedded estimator's own, named as such.

The paper's FVD, FID and CS-I are of I3D, Inception and CLIP, whose weights nobody can ship. What stands in for them at
a desk is the vector from which the embedded estimator reads each latent frame. It knows the procedural world and
nothing else, so its numbers order videos of that world and mean nothing beside the paper's.

    n clip   t latent frame   d feature
"""

from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from curvedray.data.fingerprint import file_fingerprint
from curvedray.evaluate.estimators.embedded import Embedded, at_reading_size
from curvedray.evaluate.metrics.distribution import clip_image_score, frechet_distance
from curvedray.evaluate.scores import Metric
from curvedray.files import write_tensors
from curvedray.inputs import is_file, read_tensors
from curvedray.media.video import read_video
from curvedray.paper.clips import TestClips
from curvedray.paper.judging import Judges
from curvedray.paper.setting import Setting, key_of

FVD = Metric(
    "FVD (estimator)", "-", "lower", "Frechet distance of the estimator's features, a clip's mean over frames."
)
FID = Metric("FID (estimator)", "-", "lower", "Frechet distance of the estimator's features, of all latent frames.")
CS_I = Metric("CS-I (estimator)", "-", "higher", "Mean over adjacent latent frames of 100 max(cos, 0) of its features.")
METRICS = (FVD, FID, CS_I)


def set_scores(setting: Setting, judges: Judges, videos: Path, tests: TestClips) -> dict[str, float]:
    """FVD, FID and CS-I of a row's videos by the embedded estimator's features; none where it is not the judge."""
    judge = next((one.judge for one in judges.present if isinstance(one.judge, Embedded)), None)
    if judge is None or len(tests.clips) < 2:
        return {}
    ours, real = (features_of(setting, judge, folder, tests) for folder in (videos, tests.folder / "reference"))
    frames = [x.flatten(0, 1) for x in (ours, real)]
    return {
        FVD.name: frechet_distance(ours.mean(1), real.mean(1)),
        FID.name: frechet_distance(*frames),
        CS_I.name: sum(clip_image_score(clip) for clip in ours) / len(ours),
    }


def features_of(setting: Setting, judge: Embedded, folder: Path, tests: TestClips) -> Float[Tensor, "n t d"]:
    """The estimator's features of every test clip's video in a folder, computed now or before."""
    files = [folder / f"{clip.id}.mp4" for clip in tests.clips]
    made_of = [judge.version, *(file_fingerprint(file) for file in files)]
    path = setting.folder("features", f"{key_of(made_of)}.safetensors")
    if is_file(path):
        return read_tensors(path)[0]["features"]
    features = torch.cat([summary_of(judge, read_video(file).frames[None]) for file in files])
    write_tensors(path, {"features": features})
    return features


def summary_of(judge: Embedded, videos: Tensor) -> Float[Tensor, "n t d"]:
    """What the estimator makes of each latent frame before it answers."""
    seen: list[Tensor] = []
    hook = judge.reader.summary.register_forward_hook(lambda module, inputs, output: seen.append(output))
    try:
        with torch.no_grad():
            judge.reader(judge.reader.encode(at_reading_size(videos)))
    finally:
        hook.remove()
    return torch.cat(seen)
