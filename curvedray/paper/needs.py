"""What an experiment takes that the package does not have: weights, data sets, other people's programs and videos.

A place is where a user has one of them: `--use panshot=DIR`. Whether it is there is looked up, never guessed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import Literal

from curvedray.errors import InputError
from curvedray.paper.scales import Scale

Stage = Literal["train", "generate", "estimate"]
Places = Mapping[str, str]


@dataclass(frozen=True)
class Need:
    """One thing that a stage takes; `missing` says why it cannot be used, or nothing."""

    key: str
    says: str
    brings: str  # the command or the step that brings it
    stage: Stage
    missing: Callable[[Places], str]


def _folder(key: str, holding: str = "") -> Callable[[Places], str]:
    def missing(places: Places) -> str:
        if key not in places:
            return f"no --use {key}=DIR"
        path = Path(places[key])
        if not path.is_dir():
            return f"{path} is not a folder"
        return f"{path} has no {holding}" if holding and not any(path.glob(holding)) else ""

    return missing


def _module(name: str) -> Callable[[Places], str]:
    return lambda places: "" if find_spec(name) else f"the package {name} is not installed"


def _vipe(places: Places) -> str:
    command = places.get("vipe", "vipe")
    return "" if which(command) or Path(command, "pose").is_dir() else f"no program {command}"


def _wan(places: Places) -> str:
    if "wan" in places:
        return _folder("wan", "model_index.json")(places)
    if find_spec("huggingface_hub") is None:
        return "no --use wan=DIR, and no huggingface_hub to look in its cache"
    from huggingface_hub import try_to_load_from_cache

    from curvedray.paper.scales import WAN

    found = try_to_load_from_cache(WAN.model, "model_index.json")
    return "" if isinstance(found, str) else "no --use wan=DIR, and not in the hub's cache"


def _data_set(key: str, says: str, brings: str, stage: Stage = "generate") -> Need:
    return Need(key, says, brings, stage, _folder(key))


def _videos(key: str, name: str) -> Need:
    says, brings = f"videos by {name}, named as the test clips", f"make them with {name}, then --use {key}=DIR"
    return Need(key, says, brings, "estimate", _folder(key))


WHOLE = "pip install --force-reinstall curvedray"
_LABEL = "curvedray radial label DIR/videos -o DIR-labels --teacher unik3d, then --use labels=DIR-labels"
NEEDS: dict[str, Need] = {
    need.key: need
    for need in (
        Need(
            "wan",
            "the weights of Wan2.1-T2V-1.3B in diffusers' layout",
            "hf download Wan-AI/Wan2.1-T2V-1.3B-Diffusers --local-dir wan, then --use wan=wan",
            "train",
            _wan,
        ),
        Need("accelerate", "the extra for training", "pip install 'curvedray[train]'", "train", _module("accelerate")),
        _data_set(
            "panshot",
            "PanShot: requests, poses, near distances and videos (340 test clips)",
            "the UCPE project's download, then --use panshot=DIR; curvedray data check DIR looks it over",
            "train",
        ),
        Need("labels", "UniK3D's maps of PanShot's clips", _LABEL, "train", _folder("labels", "*.npz")),
        Need(
            "unidepth-labels",
            "UniDepthV2's maps of PanShot's pinhole clips",
            "curvedray radial label DIR/videos -o LABELS --teacher unidepth, then --use unidepth-labels=LABELS",
            "train",
            _folder("unidepth-labels", "*.npz"),
        ),
        _data_set(
            "kitti360",
            "fisheye scenes of KITTI-360 (the paper has 32)",
            "download them (docs/datasets.md), then --use kitti360=DIR; curvedray data check DIR looks them over",
        ),
        _data_set(
            "realcam",
            "scenes of RealCam-Vid (the paper has 100)",
            "download them (docs/datasets.md), then --use realcam=DIR; curvedray data check DIR looks them over",
        ),
        _data_set(
            "davis",
            "sequences of DAVIS-2016 with cameras and UniK3D's maps (the paper has 33)",
            "download it (docs/datasets.md), label it with curvedray radial label, then --use davis=DIR",
        ),
        _data_set(
            "moving",
            "masks of moving objects in PanShot's test clips, CLIP.npz with `moving`",
            "make them with Segment Any Motion, then --use moving=DIR",
            "estimate",
        ),
        Need(
            "vipe",
            "ViPE, which recovers poses",
            "pip install nvidia-vipe in an environment of its own, then --use vipe=COMMAND",
            "estimate",
            _vipe,
        ),
        Need(
            "geocalib",
            "GeoCalib, which recovers lens and horizon",
            "pip install 'geocalib @ git+https://github.com/cvg/GeoCalib'",
            "estimate",
            _module("geocalib"),
        ),
        Need(
            "unik3d",
            "UniK3D, which recovers distances (non-commercial licence)",
            "pip install git+https://github.com/lpiccinelli-eth/UniK3D, then --use unik3d=accept-noncommercial",
            "estimate",
            _module("unik3d"),
        ),
        _videos("controlvideo", "ControlVideo"),
        _videos("ctrl-adapter", "Ctrl-Adapter"),
        _videos("make-your-video", "Make-Your-Video"),
        _videos("omnivdiff", "OmniVDiff"),
        _videos("vace", "VACE"),
        Need("embedded", "the embedded model's weights", WHOLE, "train", lambda places: _asset("model")),
        Need("judge", "the embedded estimator's weights", WHOLE, "estimate", lambda places: _asset("judge")),
    )
}  # fmt: skip


def _asset(what: str) -> str:
    from curvedray.evaluate.estimators.embedded import WEIGHTS as JUDGE
    from curvedray.models.embedded.model import WEIGHTS

    path = WEIGHTS if what == "model" else JUDGE
    return "" if path.is_file() else f"{path.name} is not in this package"


def of_scale(scale: Scale) -> tuple[str, ...]:
    """What every experiment takes at a scale."""
    if scale.name == "wan":
        return ("accelerate", "wan")
    return ("accelerate", "embedded") if scale.name == "embedded" else ("accelerate",)


def require(key: str, places: Places) -> None:
    """Refuse to go on without something, in one sentence with what brings it."""
    need = NEEDS[key]
    missing = need.missing(places)
    if missing:
        raise InputError(f"{need.stage}: {key}", need.says, missing, f"To bring it: {need.brings}.")


def parsed_places(words: list[str]) -> dict[str, str]:
    """`panshot=DIR` and so on, as typed."""
    places = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or key not in NEEDS:
            raise InputError("--use", f"NAME=PLACE with a name among {', '.join(NEEDS)}", word)
        places[key] = value
    return places
