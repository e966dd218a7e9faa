"""quality.npz: features that public networks put out, and the distances that public code computes from them.

Run by a Python that has cd-fvd, torchmetrics, torch-fidelity and torchvision:

    python tests/goldens/make_quality.py

The networks are the published classes with seeded random weights: what is tested is our arithmetic, not theirs.
"""

from pathlib import Path

import numpy as np
import torch
import torch_fidelity.feature_extractor_inceptionv3 as inception
from cdfvd.fvd import get_i3d_logits
from cdfvd.third_party.i3d.pytorch_i3d import InceptionI3d
from cdfvd.third_party.i3d.utils import frechet_distance
from cdfvd.utils.metric_utils import FeatureStats
from torchmetrics.image.fid import FrechetInceptionDistance, NoTrainInceptionV3
from torchmetrics.image.inception import InceptionScore

CLIPS, FRAMES = 12, 9


def videos(seed: int, speed: float) -> np.ndarray:
    """Smooth moving patterns, uint8 (clips, frames, 32, 48, 3)."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:32, 0:48] / 16
    clips = []
    for _ in range(CLIPS):
        wave, phase = rng.normal(0, 2, (3, 2)), rng.uniform(0, 6, 3)
        frames = [
            [np.sin(wave[c, 0] * x + wave[c, 1] * y + phase[c] + speed * t) for c in range(3)] for t in range(FRAMES)
        ]
        clips.append(np.moveaxis(np.array(frames), 1, -1))
    return ((np.array(clips) + 1) * 127.5).astype(np.uint8)


def livelier(model: torch.nn.Module) -> torch.nn.Module:
    """He's initialisation, so that random weights do not flatten what they see."""
    for layer in model.modules():
        if isinstance(layer, (torch.nn.Conv2d, torch.nn.Conv3d, torch.nn.Linear)):
            torch.nn.init.kaiming_normal_(layer.weight)
    return model.eval()


class SeededInception(NoTrainInceptionV3):
    """torchmetrics' Inception without its download."""

    def load_state_dict(self, *args: object, **kwargs: object) -> None:
        livelier(self)


def main() -> None:
    torch.manual_seed(0)
    ours, theirs = videos(1, 0.3), videos(2, 0.1)
    network = livelier(InceptionI3d(400, in_channels=3))
    logits = []
    for side in (ours, theirs):
        stats = get_i3d_logits(FeatureStats(capture_all=True), network, side, device="cpu")
        logits.append(stats.get_all_torch()[:, :40].clone())  # 40 of 400 logits: a file that stays small
    fvd = frechet_distance(*(x.double() for x in logits))

    inception.load_state_dict_from_url = lambda *args, **kwargs: {}
    pictures = [torch.from_numpy(side[:, ::4]).flatten(0, 1).permute(0, 3, 1, 2) for side in (ours, theirs)]
    fid = FrechetInceptionDistance(SeededInception("golden", ["64"]))
    fid.set_dtype(torch.float64)
    features = [fid.inception(side) for side in pictures]
    for shown, real in zip(pictures, (False, True), strict=True):
        fid.update(shown, real=real)
    score = InceptionScore(SeededInception("golden", ["logits_unbiased"]), splits=1)
    score.update(pictures[0])
    classes = torch.cat(score.features)
    np.savez_compressed(
        Path(__file__).with_name("quality.npz"),
        i3d_ours=logits[0].numpy(),
        i3d_theirs=logits[1].numpy(),
        fvd=fvd.numpy(),
        inception_ours=features[0].float().numpy(),
        inception_theirs=features[1].float().numpy(),
        fid=fid.compute().numpy(),
        class_logits=classes.numpy(),
        inception_score=score.compute()[0].numpy(),
    )


if __name__ == "__main__":
    main()
