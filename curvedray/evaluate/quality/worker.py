"""Features of videos by public networks, in a process of its own, run by whichever Python has those networks.

It imports nothing of curvedray, which need not be installed there. One JSON object per line comes in, one goes out:

    {"load": "i3d", "weights": "i3d.safetensors", "device": "cpu"}   -> {"version": "cd-fvd 0.1.1"}
    {"video": "frames.npy", "out": "features.npz"}                   -> {}

or {"missing": "cdfvd"} for a package that is not there, {"error": "..."} for anything else that goes wrong. Frames are
uint8 (t, h, w, 3). What the networks print goes to standard error.
"""

from __future__ import annotations  # the Python that runs this may be older than ours

import importlib.metadata
import json
import os
import sys
import tempfile
from collections.abc import Callable
from typing import Any

Features = Callable[[dict[str, Any]], dict[str, Any]]  # a request -> tensors by name

SIDE = 224  # pixels that I3D was trained on
BATCH = 16  # frames at once
# OpenAI's CLIP, for folders that do not say: red, green, blue
CLIP_MEAN, CLIP_STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)


def load_i3d(weights: str, device: str) -> tuple[Features, str]:
    """I3D's 400 logits of a whole clip: stretched to a square (FVD), and its centre crop (FVD-C)."""
    from cdfvd.third_party.i3d.pytorch_i3d import InceptionI3d
    from cdfvd.third_party.i3d.utils import preprocess_i3d

    model = filled(InceptionI3d(400, in_channels=3), weights, device)

    def features(request: dict[str, Any]) -> dict[str, Any]:
        frames = read_frames(request["video"])
        if len(frames) < 9:
            raise ValueError(f"I3D needs 9 frames or more, the clip has {len(frames)}")
        views = {"stretched": frames, "cropped": centre_crop(frames, SIDE)}
        return {name: model(preprocess_i3d(view[None]).to(device))[0] for name, view in views.items()}

    return features, version("cd-fvd")


def load_inception(weights: str, device: str) -> tuple[Features, str]:
    """Inception's 2048 features of every frame (FID) and its class probabilities (IS), as torchmetrics does."""
    import torch
    import torch_fidelity.feature_extractor_inceptionv3 as inception
    from torchmetrics.image.fid import NoTrainInceptionV3

    # Its constructor unpickles a file or downloads one: it is handed tensors instead.
    inception.load_state_dict_from_url = lambda *args, **kwargs: read_weights(weights)
    model = NoTrainInceptionV3("inception-v3-compat", ["2048", "logits_unbiased"]).to(device)

    def features(request: dict[str, Any]) -> dict[str, Any]:
        frames = torch.from_numpy(read_frames(request["video"])).permute(0, 3, 1, 2)
        parts = [model._torch_fidelity_forward(part.to(device)) for part in frames.split(BATCH)]
        found, logits = (torch.cat(column) for column in zip(*parts, strict=True))
        return {"features": found, "probabilities": logits.double().softmax(1)}

    return features, f"{version('torchmetrics')}, {version('torch-fidelity')}"


def load_lpips(weights: str, device: str) -> tuple[Features, str]:
    """LPIPS (AlexNet, version 0.1) of every frame and the same frame of another video."""
    import lpips
    import torch

    model = lpips.LPIPS(net="alex", pnet_rand=True, verbose=False)  # its linear layers are in the package
    trunk = {name.partition("features.")[2]: value for name, value in read_weights(weights).items()}
    owners = {name.partition(".")[2]: name for name in model.net.state_dict()}  # "0.weight" -> "slice1.0.weight"
    model.net.load_state_dict({owners[name]: value for name, value in trunk.items() if name in owners})
    model = model.to(device).eval()

    def features(request: dict[str, Any]) -> dict[str, Any]:
        pair = [torch.from_numpy(read_frames(request[name])).permute(0, 3, 1, 2) for name in ("video", "other")]
        if pair[0].shape != pair[1].shape:
            sizes = [f"{len(one)} frames of {one.shape[3]} x {one.shape[2]}" for one in pair]
            raise ValueError(f"a video of {sizes[0]} and a reference of {sizes[1]}")
        parts = [
            model(*(frames.to(device).float() / 127.5 - 1 for frames in part)).flatten()
            for part in zip(*(frames.split(BATCH) for frames in pair), strict=True)
        ]
        return {"distance": torch.cat(parts)}

    return features, version("lpips")


def load_clip(weights: str, device: str) -> tuple[Features, str]:
    """CLIP's embeddings of every frame and of a caption; LongCLIP in the same layout reads longer captions."""
    import torch
    from transformers import CLIPModel, CLIPTokenizer

    model = CLIPModel.from_pretrained(weights, use_safetensors=True, local_files_only=True).to(device).eval()
    tokenizer = CLIPTokenizer.from_pretrained(weights, local_files_only=True)
    longest = model.config.text_config.max_position_embeddings
    prepared = clip_pictures(weights, model.config.vision_config.image_size)

    def features(request: dict[str, Any]) -> dict[str, Any]:
        pictures = prepared(read_frames(request["video"]))
        parts = [model.vision_model(pixel_values=part.to(device)).pooler_output for part in pictures.split(BATCH)]
        found = {"frames": model.visual_projection(torch.cat(parts))}
        if request.get("text") is not None:
            words = tokenizer(request["text"], return_tensors="pt", truncation=True, max_length=longest)
            found["caption"] = model.text_projection(model.text_model(**words.to(device)).pooler_output)[0]
            found["cut"] = torch.tensor(len(tokenizer(request["text"])["input_ids"]) > longest)
        return found

    return features, version("transformers")


def load_vbench(weights: str, device: str) -> tuple[Features, str]:
    """VBench's dimensions of a folder of videos; `weights` is the cache in which it keeps its own networks."""
    os.environ["VBENCH_CACHE_DIR"] = weights
    import torch
    import vbench

    info = os.path.join(os.path.dirname(vbench.__file__), "VBench_full_info.json")

    def features(request: dict[str, Any]) -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            bench = vbench.VBench(torch.device(device), info, folder)
            asked = request["dimensions"]
            captions = request["captions"]  # by file name; without them VBench would take the names for captions
            bench.evaluate(request["folder"], "found", captions, asked, local=True, mode="custom_input")
            with open(os.path.join(folder, "found_eval_results.json")) as file:
                answer = json.load(file)
        files, found = request["files"], {}
        for dimension in asked:
            values = {os.path.basename(one["video_path"]): one["video_results"] for one in answer[dimension][1]}
            found[dimension] = torch.tensor([float(values.get(file, float("nan"))) for file in files])
        return found

    return features, version("vbench")


LOADERS = {
    "i3d": load_i3d,
    "inception": load_inception,
    "lpips": load_lpips,
    "clip": load_clip,
    "longclip": load_clip,
    "vbench": load_vbench,
}


def read_frames(path: str) -> Any:
    import numpy as np

    return np.load(path, allow_pickle=False)


def read_weights(path: str) -> dict[str, Any]:
    from safetensors.torch import load_file

    return load_file(path)


def filled(model: Any, weights: str, device: str) -> Any:
    model.load_state_dict(read_weights(weights))
    return model.to(device).eval()


def centre_crop(frames: Any, side: int) -> Any:
    """The shorter side scaled to `side`, bilinear, then the middle square."""
    import torch
    import torch.nn.functional as F

    height, width = frames.shape[1:3]
    scale = side / min(height, width)
    size = max(side, round(height * scale)), max(side, round(width * scale))
    pictures = torch.from_numpy(frames).permute(0, 3, 1, 2).float()
    pictures = F.interpolate(pictures, size=size, mode="bilinear", align_corners=False)
    top, left = (size[0] - side) // 2, (size[1] - side) // 2
    return pictures[:, :, top : top + side, left : left + side].permute(0, 2, 3, 1).numpy()


def clip_pictures(weights: str, side: int) -> Callable[[Any], Any]:
    """As CLIP's own processor does it: bicubic to the shorter side, the centre, the colours' mean and spread."""
    import numpy as np
    import torch
    from PIL import Image

    mean, spread = CLIP_MEAN, CLIP_STD
    said = os.path.join(weights, "preprocessor_config.json")
    if os.path.isfile(said):
        with open(said, encoding="utf-8") as file:
            content = json.load(file)
        mean, spread = content.get("image_mean", mean), content.get("image_std", spread)

    def prepared(frames: Any) -> Any:
        pictures = []
        for frame in frames:
            picture = Image.fromarray(frame)
            scale = side / min(picture.size)
            size = [max(side, int(length * scale)) for length in picture.size]
            picture = picture.resize(size, Image.Resampling.BICUBIC)
            left, top = ((length - side) // 2 for length in size)
            pictures.append(np.asarray(picture.crop((left, top, left + side, top + side)), dtype=np.float32) / 255)
        batch = (np.stack(pictures) - np.array(mean, np.float32)) / np.array(spread, np.float32)
        return torch.from_numpy(batch).permute(0, 3, 1, 2).contiguous()

    return prepared


def version(package: str) -> str:
    try:
        return f"{package} {importlib.metadata.version(package)}"
    except importlib.metadata.PackageNotFoundError:
        return f"{package} of unknown version"


def answer(request: dict[str, Any], features: Features) -> dict[str, Any]:
    """Features written to the file that was asked for."""
    import numpy as np
    import torch

    with torch.inference_mode():
        found = features(request)
    arrays = {name: value.detach().cpu().numpy() for name, value in found.items()}
    with open(request["out"], "wb") as file:
        np.savez(file, **arrays)
    return {}


def main() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != here]  # our files are nobody's modules
    replies, sys.stdout = sys.stdout, sys.stderr
    features: Features | None = None
    for line in sys.stdin:
        try:
            request = json.loads(line)
            if "load" in request:
                features, said = LOADERS[request["load"]](request["weights"], request["device"])
                reply = {"version": said}
            else:
                assert features is not None, "nothing was loaded"
                reply = answer(request, features)
        except ModuleNotFoundError as error:
            reply = {"missing": error.name or str(error)}
        except Exception as error:  # whatever it is, the one who asked must hear of it
            reply = {"error": (str(error).strip().splitlines() or [type(error).__name__])[0]}
        print(json.dumps(reply), file=replies, flush=True)


if __name__ == "__main__":
    main()
