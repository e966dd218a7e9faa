"""Which network each score needs, whose code runs it, and where its weights come from; nothing is imported here."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from curvedray.errors import InputError
from curvedray.evaluate.metrics import distribution, fidelity, perceptual
from curvedray.evaluate.scores import Metric

Needs = Literal["", "reference", "captions"]


@dataclass(frozen=True)
class Extractor:
    """A network: the packages that run it, and the name that its weights have in the folder of weights."""

    packages: tuple[str, ...]
    weights: str
    source: str  # where the weights are published
    pickled: bool = True  # published as a .pt or .pth, which is converted to safetensors once
    alone: bool = False  # its pins clash with ours: it lives in an environment of its own
    pins: tuple[str, ...] = ()  # what its packages need beside them and do not say

    def install(self, python: str) -> str:
        """The command that brings its packages to a Python, or to an environment of their own."""
        packages = " ".join([*self.packages, *(f"'{pin}'" for pin in self.pins)])
        if self.alone:
            return f"python3 -m venv {self.weights}-env && {self.weights}-env/bin/pip install {packages}"
        return f"{python} -m pip install {packages}"


EXTRACTORS = {
    "i3d": Extractor(
        ("cd-fvd",), "i3d.safetensors", "github.com/songweige/TATS, tats/fvd/i3d_pretrained_400.pt (Kinetics-400)"
    ),
    "inception": Extractor(
        ("torchmetrics", "torch-fidelity"),
        "inception.safetensors",
        "github.com/toshas/torch-fidelity, release v0.2.0, weights-inception-2015-12-05-6726825d.pth",
    ),
    "lpips": Extractor(("lpips",), "alexnet.safetensors", "download.pytorch.org/models/alexnet-owt-7be5be79.pth"),
    "clip": Extractor(("transformers",), "clip", "huggingface.co/openai/clip-vit-large-patch14", pickled=False),
    "longclip": Extractor(
        ("transformers",), "longclip", "huggingface.co, LongCLIP-L in the layout of transformers", pickled=False
    ),
    "vbench": Extractor(
        ("vbench",),
        "vbench",
        "VBench's own cache, which it fills on first use",
        pickled=False,
        alone=True,
        pins=("setuptools<70",),  # its CLIP imports what later ones lack
    ),
}


@dataclass(frozen=True)
class Kind:
    """How a score is asked for: by what network, and beside what."""

    metric: Metric
    extractor: str
    needs: Needs = ""
    dimension: str = ""  # VBench's name


METRIC_NAMES: dict[str, Kind] = {
    "fvd": Kind(distribution.FVD, "i3d", "reference"),
    "fvd-c": Kind(distribution.FVD_C, "i3d", "reference"),
    "fid": Kind(distribution.FID, "inception", "reference"),
    "is": Kind(distribution.IS, "inception"),
    "cs-t": Kind(distribution.CS_T, "longclip", "captions"),
    "cs-i": Kind(distribution.CS_I, "clip"),
    "lpips": Kind(fidelity.LPIPS, "lpips", "reference"),
    "aesthetic": Kind(perceptual.AESTHETIC, "vbench", dimension="aesthetic_quality"),
    "background": Kind(perceptual.BACKGROUND, "vbench", dimension="background_consistency"),
    "imaging": Kind(perceptual.IMAGING, "vbench", dimension="imaging_quality"),
    "overall": Kind(perceptual.OVERALL, "vbench", "captions", "overall_consistency"),
    "subject": Kind(perceptual.SUBJECT, "vbench", dimension="subject_consistency"),
    "style": Kind(perceptual.STYLE, "vbench", "captions", "overall_consistency"),  # one computation with `overall`
    "flicker": Kind(perceptual.FLICKER, "vbench", dimension="temporal_flickering"),
}
PAPERS = tuple(name for name in METRIC_NAMES if name != "flicker")  # what is measured unless one says otherwise


def chosen_metrics(text: str | None) -> dict[str, Kind]:
    """`fvd,fid` -> their kinds; nothing is all of the paper's; `vbench` is all of VBench's."""
    if text is None:
        return {name: METRIC_NAMES[name] for name in PAPERS}
    names: list[str] = []
    for word in (word.strip().lower() for word in text.split(",")):
        if word not in METRIC_NAMES and word != "vbench":
            raise InputError("--metrics", f"names from {', '.join(METRIC_NAMES)}, vbench", word or "nothing")
        names += [name for name in PAPERS if METRIC_NAMES[name].extractor == "vbench"] if word == "vbench" else [word]
    return {name: METRIC_NAMES[name] for name in names}


def weights_of(name: str, folder: Path | None) -> Path:
    """An extractor's weights in the folder of weights, or the sentence that says what to put there."""
    extractor = EXTRACTORS[name]
    expected = f"{extractor.weights} in the folder of --weights"
    fix = f"Get it from {extractor.source}" + (", and convert it: docs/quality.md." if extractor.pickled else ".")
    if folder is None:
        raise InputError(f"weights of {name}", expected, "no such folder", fix)
    path = folder / extractor.weights
    if not path.exists():
        raise InputError(f"weights of {name}", expected, f"{folder} without it", fix)
    return path
