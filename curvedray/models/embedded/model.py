"""The embedded model: a tiny Wan with our own codec and words, trained on the procedural world, in the package.

It implements `models.VideoModel` with a twin of Wan's transformer, so every line above it is the line that runs Wan.

    b clip   c latent channel   t y x latent frame, row, column   l e text token and its width
"""

import hashlib
import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from curvedray.cameras import TokenGrid
from curvedray.errors import InputError
from curvedray.files import write_tensors
from curvedray.inputs import exists, parsed_json, read_tensors
from curvedray.models.embedded.codec import SPACE, TIME, PatchCodec
from curvedray.models.embedded.transformer import EmbeddedTransformer
from curvedray.models.embedded.words import NEIGHBOURS, WordEncoder
from curvedray.models.flow import TRAIN_TIMESTEPS
from curvedray.models.interface import Defaults
from curvedray.world.themes import WORDS

WEIGHTS = Path(__file__).parents[2] / "assets" / "embedded.safetensors"
ADAPTER = WEIGHTS.with_name("embedded_adapter.safetensors")  # for cameras, and maps of distances
DECODER = ("codec.correction.", "codec.paint.")  # the weights of its trained layers
LARGEST = 4096  # of every number of a shape: a larger one is a damaged header
MOST = {"neighbours": len(NEIGHBOURS)}  # but of these
GRID = TokenGrid(5, 8, 12, (TIME, SPACE, SPACE))  # of its 17 frames of 64 x 96


@dataclass(frozen=True)
class EmbeddedShape:
    """The sizes of an embedded model, stored in its file."""

    words: tuple[str, ...]
    channels: int = 48
    heads: int = 4
    head_dim: int = 32
    layers: int = 8
    ffn: int = 512
    text_width: int = 64  # of a word
    neighbours: int = len(NEIGHBOURS)  # words that a token carries beside its own
    text_tokens: int = 24
    frames: int = 17
    height: int = 64
    width: int = 96
    patch: int = 1  # latent rows and columns of a token
    painted: int = 16  # channels per pixel of the decoder's last layers; 0: it has none on pixels

    @classmethod
    def from_json(cls, record: Any, name: str) -> "EmbeddedShape":
        """The sizes that a file's header holds, every one of them checked."""
        known = {field.name for field in fields(cls)}
        if not isinstance(record, dict) or not {"words"} <= set(record) <= known:
            got = ", ".join(map(str, record)) if isinstance(record, dict) else type(record).__name__
            raise InputError(name, f"a shape of {', '.join(sorted(known))}", got)
        sizes = {key: value for key, value in record.items() if key != "words"}
        words = record["words"]
        for key, value in sizes.items():
            least, most = 0 if key in ("painted", "neighbours") else 1, MOST.get(key, LARGEST)
            if type(value) is not int or not least <= value <= most:
                raise InputError(f"{name}, {key}", f"a whole number from {least} to {most}", repr(value))
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words) or len(words) > LARGEST:
            raise InputError(f"{name}, words", f"a list of at most {LARGEST} words", type(words).__name__)
        return cls(tuple(words), **sizes)


class EmbeddedModel(nn.Module):
    """A text-to-video flow model of a few million weights (`models.VideoModel`)."""

    name = ""
    shift = 12.0  # few steps where little noise is left: they only added grain, seen on validation clips
    spread: Tensor

    def __init__(self, shape: EmbeddedShape):
        super().__init__()
        self.shape, self.text_tokens = shape, shape.text_tokens
        self.card: dict[str, Any] = {}  # how it was trained; it travels in the file
        self.defaults = Defaults(
            shape.frames,
            shape.height,
            shape.width,
            steps=16,
            guidance=1.0,
            fps=8,
            camera_guidance=3.0,
            drop_text=True,
            block_guidance=1.35,
            left_out=shape.layers // 4,
            zoom=4,
        )
        self.codec = PatchCodec(shape.channels, painted=shape.painted)
        self.words = WordEncoder(shape.words, shape.text_width, shape.text_tokens, shape.neighbours)
        self.transformer: nn.Module = EmbeddedTransformer(
            channels=shape.channels,
            heads=shape.heads,
            head_dim=shape.head_dim,
            layers=shape.layers,
            ffn=shape.ffn,
            text_width=self.words.channels,
            patch=shape.patch,
        )
        self.register_buffer("spread", torch.ones(shape.channels, 2))  # of latents: in the first frame, and after it

    @property
    def device(self) -> torch.device:
        return self.spread.device

    def grid_for(self, frames: int, height: int, width: int) -> TokenGrid:
        return TokenGrid.from_video(frames, height, width, (TIME, SPACE * self.shape.patch, SPACE * self.shape.patch))

    def latent_shape(self, grid: TokenGrid) -> tuple[int, int, int, int]:
        return self.shape.channels, grid.frames, grid.rows * self.shape.patch, grid.cols * self.shape.patch

    @torch.no_grad()
    def encode_text(self, prompts: list[str]) -> Float[Tensor, "b l e"]:
        return self.words(prompts)

    @torch.no_grad()
    def encode(self, video: Float[Tensor, "b 3 frames h w"]) -> Float[Tensor, "b c t y x"]:
        return self.codec.encode(video.to(self.device))

    @torch.no_grad()
    def decode(self, latents: Float[Tensor, "b c t y x"]) -> Float[Tensor, "b 3 frames h w"]:
        return self.codec.decode(latents.to(self.spread)).clamp(-1, 1)

    def velocity(
        self, latents: Float[Tensor, "b c t y x"], sigma: Float[Tensor, " b"], text: Float[Tensor, "b l e"]
    ) -> Float[Tensor, "b c t y x"]:
        """The best linear guess from the noisy latents alone, plus what the transformer knows better.

        With x = (1 - s) clean + s noise and clean latents of deviation d, that guess is (s - (1 - s) d^2) / v x with
        v = (1 - s)^2 d^2 + s^2, and the error it leaves has deviation d / sqrt(v): the transformer sees inputs and
        predicts outputs of unit size at every noise level (the preconditioning of EDM, for velocities).
        """
        level = sigma.reshape(-1, 1, 1, 1, 1)
        first, rest = self.spread.unbind(-1)
        deviation = torch.stack([first, *[rest] * (latents.shape[2] - 1)], -1)[:, :, None, None]
        variance = (1 - level) ** 2 * deviation**2 + level**2
        guess = (level - (1 - level) * deviation**2) / variance * latents
        known = self.transformer(
            hidden_states=latents * variance.rsqrt(),
            timestep=sigma * TRAIN_TIMESTEPS,
            encoder_hidden_states=text,
            return_dict=False,
        )[0]
        return guess + deviation * variance.rsqrt() * known

    def release(self, *, text: bool = False, vae: bool = False) -> None:
        """Its words and its codec are a few hundred kilobytes: they stay."""

    @torch.no_grad()
    def measure(self, latents: Float[Tensor, "b c t y x"]) -> None:
        """Set the deviation of clean latents from many of them."""
        self.spread[:, 0] = latents[:, :, 0].square().mean((0, 2, 3)).sqrt()
        self.spread[:, 1] = latents[:, :, 1:].square().mean((0, 2, 3, 4)).sqrt()


def save_embedded(model: EmbeddedModel, path: Path, card: dict[str, Any] | None = None) -> None:
    """All of it as one safetensors file in half precision, with its sizes and a card, else its own, in the header."""
    header = json.dumps({"shape": asdict(model.shape), "card": card or model.card}, sort_keys=True)
    write_tensors(path, {name: tensor.half() for name, tensor in model.state_dict().items()}, {"embedded": header})


def load_embedded(path: Path = WEIGHTS) -> EmbeddedModel:
    """The model in the package, or another one from a file that `save_embedded` wrote."""
    check_weights(path)
    name = f"embedded model {path.name}"
    tensors, header = read_tensors(path, "the weights of an embedded model")
    if "embedded" not in header:
        raise InputError(name, "a file of save_embedded", "weights of something else")
    stored = parsed_json(header["embedded"], name, "a header")
    if not isinstance(stored, dict) or not isinstance(stored.get("card"), dict):
        raise InputError(name, "a header with a shape and a card", type(stored).__name__)
    shape = EmbeddedShape.from_json(stored.get("shape"), name)
    check_sizes(name, tensors, shape)
    model = EmbeddedModel(shape)
    check_tensors(name, tensors, {key: tensor.shape for key, tensor in model.state_dict().items()})
    model.load_state_dict({key: tensor.float() for key, tensor in tensors.items()})
    model.card = stored["card"]
    return model.eval().requires_grad_(False)


def training_key(path: Path) -> str:
    """A digest of all that a training sees of a model in a file: everything but its decoder."""
    tensors, _ = read_tensors(path, "the weights of an embedded model")
    digest = hashlib.sha256()
    for name in sorted(tensors):
        if not name.startswith(DECODER):
            digest.update(name.encode() + tensors[name].contiguous().numpy().tobytes())
    return digest.hexdigest()


def check_sizes(name: str, tensors: dict[str, Tensor], shape: EmbeddedShape) -> None:
    """Compare the header with the tensors that show each of its sizes, before any memory is taken for them."""
    dim, last = shape.heads * shape.head_dim, f"transformer.blocks.{shape.layers - 1}"
    shows: dict[str, tuple[int, ...]] = {
        "codec.first_basis": (shape.channels, 3 * SPACE * SPACE),
        "words.word": (len(shape.words) + 1, shape.text_width),
        "words.place": (shape.text_tokens, shape.text_width),
        f"{last}.attn1.to_q.weight": (dim, dim),
        f"{last}.ffn.net.2.weight": (dim, shape.ffn),
    }
    if shape.painted:
        shows["codec.paint.6.weight"] = (3, shape.painted, 1, 3, 3)
    for key, size in shows.items():
        got = tuple(tensors[key].shape) if key in tensors else "none"
        if got != size:
            raise InputError(f"{name}: {key}", f"a tensor of shape {size}, as the header says", got)


def check_tensors(name: str, tensors: dict[str, Tensor], wanted: dict[str, torch.Size]) -> None:
    """Refuse weights that are missing, extra, of another shape, not of a float dtype, or not finite; say which."""
    if odd := sorted(set(tensors) ^ set(wanted)):
        got = f"{'no' if odd[0] in wanted else 'an extra'} {odd[0]}"
        raise InputError(name, f"its {len(wanted)} tensors", got)
    for key, tensor in tensors.items():
        if tensor.shape != wanted[key] or not tensor.is_floating_point():
            expected, got = f"floats of shape {tuple(wanted[key])}", f"{tensor.dtype} of shape {tuple(tensor.shape)}"
            raise InputError(f"{name}: {key}", expected, got)
        if not torch.isfinite(tensor.float()).all():
            raise InputError(f"{name}: {key}", "finite weights", "NaN or infinity", "Train it again, or copy it again.")


def random_embedded(seed: int = 0) -> EmbeddedModel:
    """The same shape with untrained weights: what training from nothing starts with."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return EmbeddedModel(EmbeddedShape(tuple(WORDS))).eval().requires_grad_(False)


def check_weights(path: Path) -> None:
    """Say what to do where the weights are not there."""
    if not exists(path):
        fix = "Name another model: --model with a Wan folder or hub id, and --adapter with an adapter for it."
        raise InputError("embedded model", f"its weights in {path.name}", "none there", fix)
