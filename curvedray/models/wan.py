"""The one door to diffusers: Wan's transformer, VAE, text encoder and schedule, from a folder or a hub id.

Nothing of diffusers is copied or changed; its classes load, offload, tile and checkpoint as they always do.
"""

import gc
import inspect
import threading
import warnings
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from curvedray.cameras import TokenGrid
from curvedray.errors import InputError
from curvedray.extras import needed
from curvedray.inputs import exists, first_line, is_file, is_folder, parsed_json, read_text
from curvedray.models.flow import TRAIN_TIMESTEPS
from curvedray.models.interface import Defaults

needed("diffusers")

from diffusers import AutoencoderKLWan, WanPipeline, WanTransformer3DModel  # noqa: E402

# The published shapes, for tests and tables on the meta device; weights come with their own config.
SHAPES: dict[str, dict[str, Any]] = {
    "wan2.1-1.3b": {"num_attention_heads": 12, "ffn_dim": 8960, "num_layers": 30},
    "wan2.1-14b": {"num_attention_heads": 40, "ffn_dim": 13824, "num_layers": 40},
    "wan2.2-ti2v-5b": {
        "num_attention_heads": 24,
        "ffn_dim": 14336,
        "num_layers": 30,
        "in_channels": 48,
        "out_channels": 48,
    },
}
NEGATIVE = "frozen frame, blur, flicker, washed-out grey, overexposure, captions, compression blocks, deformed bodies"
TEXT_TOKENS = 512
T2V, TI2V = (81, 480, 832, 16), (121, 704, 1280, 24)  # frames, height, width, frames per second
TWO_EXPERTS = "a model with two experts, one for each end of the noise"
ONE_EXPERT = "Use Wan2.1-T2V (1.3B or 14B) or Wan2.2-TI2V-5B."


def wan_transformer(device: str = "cpu", **config: Any) -> nn.Module:
    """A Wan transformer with random weights, or none on the meta device."""
    with torch.device(device):
        return WanTransformer3DModel(**config)


def encoding_operations(frames: int, height: int, width: int) -> float:
    """Multiplications and additions of Wan 2.1's VAE that encodes one video, counted by torch without computing any."""
    from torch.utils.flop_counter import FlopCounterMode

    with torch.device("meta"):
        vae, video = AutoencoderKLWan(), torch.zeros(1, 3, frames, height, width)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        vae.encode(video)
    return float(counter.get_total_flops())


# Its VAE keeps what it saw last in itself: encoding in one thread would break decoding in another.
_VAE_IN_USE = threading.Lock()


class Wan:
    """A Wan text-to-video model, as the other rooms see a model (`models.VideoModel`)."""

    text_tokens = TEXT_TOKENS

    def __init__(self, pipeline: WanPipeline, name: str = "", compression: tuple[int, int] | None = None):
        """Wrap a pipeline that diffusers has loaded. The transformer's weights are not touched.

        `compression` is the VAE's, in time and space, for a pipeline that was loaded without it.
        """
        if pipeline.transformer is None or getattr(pipeline, "transformer_2", None) is not None:
            raise InputError("model", "one transformer", TWO_EXPERTS, ONE_EXPERT)
        self.name, self.pipeline, self.transformer = name, pipeline, pipeline.transformer
        schedule = pipeline.scheduler.config if pipeline.scheduler is not None else {}
        self.shift = float(schedule.get("flow_shift") or schedule.get("shift") or 3.0)
        self.expand_timesteps = bool(pipeline.config.get("expand_timesteps", False))
        self.compression = compression or (pipeline.vae_scale_factor_temporal, pipeline.vae_scale_factor_spatial)
        frames, height, width, fps = TI2V if self.expand_timesteps else T2V
        self.defaults = Defaults(frames, height, width, steps=50, guidance=5.0, fps=fps, negative=NEGATIVE)

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        dtype: torch.dtype | None = None,
        device: str | torch.device | None = None,
        offload: bool = False,
        tiling: bool = False,
        slicing: bool = False,
        gradient_checkpointing: bool = False,
        text: bool = True,
        vae: bool = True,
        local_only: bool = False,
    ) -> "Wan":
        """Load a local folder in diffusers' layout or a hub id such as `Wan-AI/Wan2.1-T2V-1.3B-Diffusers`.

        By default on a GPU if there is one, in bfloat16 there and float32 on a CPU; the VAE is always float32.
        `offload` keeps on the GPU only the part at work. Training from a latent cache needs neither text nor VAE.
        """
        needed("transformers", "accelerate")
        device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        dtype = dtype or (torch.float32 if device.type == "cpu" else torch.bfloat16)
        missing: dict[str, None] = {} if text else {"text_encoder": None, "tokenizer": None}
        missing |= {} if vae else {"vae": None}
        _check_index(Path(path), local_only)
        dtypes = {"default": dtype, "vae": torch.float32}
        compression = None
        try:
            with warnings.catch_warnings():
                # Newer versions say `dtype`, which older ones would ignore; both read `torch_dtype`.
                warnings.simplefilter("ignore", FutureWarning)
                pipeline = WanPipeline.from_pretrained(
                    str(path), torch_dtype=dtypes, local_files_only=local_only, **missing
                )
                if not vae:
                    config = AutoencoderKLWan.load_config(str(path), subfolder="vae", local_files_only=local_only)
                    compression = _compression(config)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError, ImportError) as error:
            expected = "a Wan model in diffusers' layout (model_index.json, transformer, vae, ...)"
            fix = "Pass a folder that holds one, or a hub id while online."
            raise InputError(f"model {path}", expected, first_line(error), fix) from error
        if offload and device.type != "cpu":
            pipeline.enable_model_cpu_offload(device=device)
        else:
            pipeline.to(device)
        if vae and tiling:
            pipeline.vae.enable_tiling()
        if vae and slicing:
            pipeline.vae.enable_slicing()
        if gradient_checkpointing:
            pipeline.transformer.enable_gradient_checkpointing()
        return cls(pipeline, str(path), compression)

    # -- what it is

    @property
    def device(self) -> torch.device:
        return self.pipeline._execution_device

    @property
    def stride(self) -> tuple[int, int, int]:
        """Video frames, rows and columns that a token stands for: the VAE's compression times the patch."""
        t, h, w = self.transformer.config.patch_size
        return self.compression[0] * t, self.compression[1] * h, self.compression[1] * w

    def grid_for(self, frames: int, height: int, width: int) -> TokenGrid:
        return TokenGrid.from_video(frames, height, width, self.stride)

    def latent_shape(self, grid: TokenGrid) -> tuple[int, int, int, int]:
        t, h, w = self.transformer.config.patch_size
        return self.transformer.config.in_channels, grid.frames * t, grid.rows * h, grid.cols * w

    def release(self, *, text: bool = False, vae: bool = False) -> None:
        """Free the text encoder and the VAE, some 11 GB and 0.5 GB in bfloat16, once everything is encoded."""
        if text:
            self.pipeline.text_encoder = self.pipeline.tokenizer = None
        if vae:
            self.pipeline.vae = None
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    # -- what it does

    @torch.no_grad()
    def encode_text(self, prompts: list[str]) -> Float[Tensor, "b l e"]:
        if self.pipeline.text_encoder is None:
            got = "one without, or one that has released it"
            raise InputError("text encoder", "a model loaded with its text encoder", got, "Load it with text=True.")
        return self.pipeline.encode_prompt(prompts, do_classifier_free_guidance=False, max_sequence_length=TEXT_TOKENS)[
            0
        ]

    @torch.no_grad()
    def encode(self, video: Float[Tensor, "b 3 t h w"]) -> Float[Tensor, "b c lt lh lw"]:
        """The most likely latents of a video, normalised as the transformer knows them."""
        mean, std = self._latent_statistics()
        with _VAE_IN_USE:
            latents = self.pipeline.vae.encode(video.to(mean)).latent_dist.mode()
        return (latents - mean) / std

    @torch.no_grad()
    def decode(self, latents: Float[Tensor, "b c lt lh lw"]) -> Float[Tensor, "b 3 t h w"]:
        mean, std = self._latent_statistics()
        with _VAE_IN_USE:
            return self.pipeline.vae.decode(latents.to(mean) * std + mean, return_dict=False)[0].clamp(-1, 1)

    def velocity(
        self, latents: Float[Tensor, "b c lt lh lw"], sigma: Float[Tensor, " b"], text: Float[Tensor, "b l e"]
    ) -> Float[Tensor, "b c lt lh lw"]:
        """noise - clean, as the transformer predicts it at noise level sigma; float32 whatever its weights are."""
        time = sigma.float() * TRAIN_TIMESTEPS
        if self.expand_timesteps:  # Wan2.2 TI2V wants a timestep per token
            patch = self.transformer.config.patch_size
            tokens = latents[0, 0].numel() // (patch[0] * patch[1] * patch[2])
            time = time[:, None].expand(-1, tokens)
        weights = self.transformer.dtype
        return self.transformer(
            hidden_states=latents.to(weights),
            timestep=time,
            encoder_hidden_states=text.to(weights),
            return_dict=False,
        )[0].float()

    def _latent_statistics(self) -> tuple[Tensor, Tensor]:
        vae = self.pipeline.vae
        if vae is None:
            got = "one without, or one that has released it"
            raise InputError("VAE", "a model loaded with its VAE", got, "Load it with vae=True.")
        numbers = (vae.config.latents_mean, vae.config.latents_std)
        mean, std = (torch.tensor(i, dtype=vae.dtype, device=self.device).reshape(1, -1, 1, 1, 1) for i in numbers)
        return mean, std


def _compression(config: dict[str, Any]) -> tuple[int, int]:
    """A VAE's compression in time and space. Published configs may leave it out: then the class's default holds."""
    own = inspect.signature(AutoencoderKLWan.__init__).parameters
    time, space = (
        int(config.get(name, own[name].default)) for name in ("scale_factor_temporal", "scale_factor_spatial")
    )
    return time, space


def _check_index(path: Path, local_only: bool) -> None:
    """Look at model_index.json, a few lines, before gigabytes of weights are loaded."""
    index = path / "model_index.json"
    is_hub_id = not (path.is_absolute() or exists(path) or str(path).startswith(".") or len(path.parts) != 2)
    if is_hub_id:
        try:
            record = WanPipeline.load_config(str(path), local_files_only=local_only)
        except (OSError, ValueError):
            return  # loading says what is wrong with a hub id, and what to do
    elif not is_file(index):
        got = "a folder without it" if is_folder(path) else "nothing there"
        fix = "Pass the folder that holds it, or a hub id such as Wan-AI/Wan2.1-T2V-1.3B-Diffusers."
        raise InputError(f"model {path}", "a folder with a model_index.json", got, fix)
    else:
        record = parsed_json(read_text(index, "the index of a model"), str(index), "the index of a model")
    if not isinstance(record, dict):
        raise InputError(str(index), "a JSON object", type(record).__name__)
    if record.get("_class_name") != "WanPipeline":
        fix = "Only Wan text-to-video models can be used."
        raise InputError(str(index), "a WanPipeline", str(record.get("_class_name")), fix)
    second = record.get("transformer_2")
    if isinstance(second, list) and any(part is not None for part in second):
        raise InputError(str(index), "one transformer", TWO_EXPERTS, ONE_EXPERT)
