"""Tiny random models of Wan's own classes, saved as folders of the real layout, and adapters on them."""

from pathlib import Path
from typing import Any

import torch
from diffusers import AutoencoderKLWan, UniPCMultistepScheduler, WanPipeline
from tokenizers import Tokenizer, models, pre_tokenizers
from torch import Tensor, nn
from transformers import T5TokenizerFast, UMT5Config, UMT5EncoderModel

from curvedray.adapter.adapter import Adapter
from curvedray.adapter.config import AdapterConfig
from curvedray.cameras import Cameras, Lens, TokenGrid
from curvedray.models.wan import Wan, wan_transformer

CHANNELS, TEXT = 16, 24
GRID = TokenGrid(3, 4, 6)
TI2V_VAE: dict[str, Any] = {
    "decoder_base_dim": 4,
    "is_residual": True,
    "in_channels": 12,
    "out_channels": 12,
    "patch_size": 2,
    "scale_factor_spatial": 16,
}


def tiny_transformer(layers: int = 3, seed: int = 0, **config: Any) -> nn.Module:
    """Two heads of 24 channels, frozen nowhere: the smallest that has every part."""
    torch.manual_seed(seed)
    settings = {"num_attention_heads": 2, "attention_head_dim": 24, "ffn_dim": 64, "text_dim": TEXT, "freq_dim": 16}
    return wan_transformer(num_layers=layers, in_channels=CHANNELS, out_channels=CHANNELS, **(settings | config)).eval()


def inputs(grid: TokenGrid = GRID, batch: int = 1, seed: int = 1, channels: int = CHANNELS) -> dict[str, Any]:
    """Latents, a timestep and a text for a transformer's forward."""
    generator = torch.Generator().manual_seed(seed)
    shape = (batch, channels, grid.frames, grid.rows * 2, grid.cols * 2)
    return {
        "hidden_states": torch.randn(shape, generator=generator),
        "timestep": torch.full((batch,), 500.0),
        "encoder_hidden_states": torch.randn(batch, 7, TEXT, generator=generator),
        "return_dict": False,
    }


def path(frames: int = GRID.frames, seed: int = 2, xi: float = 0.5, fov: float = 100.0, reach: float = 0.4) -> Cameras:
    """A shaky path: small random turns and steps from the origin, in near distances."""
    generator = torch.Generator().manual_seed(seed)
    turn = reach * torch.randn(frames, 3, 3, generator=generator, dtype=torch.float64)
    poses = torch.eye(4, dtype=torch.float64).repeat(frames, 1, 1)
    poses[:, :3, :3] = torch.matrix_exp(turn - turn.mT)
    poses[:, :3, 3] = torch.randn(frames, 3, generator=generator, dtype=torch.float64)
    return Cameras(Lens.from_fov(fov, xi, 96, 64), poses.float(), unit="near")


def tiny_pipeline(layers: int = 3, seed: int = 0, *, ti2v: bool = False) -> WanPipeline:
    """Wan2.1's parts, or Wan2.2 TI2V's: a VAE that compresses 16 x 16, and a timestep per token."""
    torch.manual_seed(seed)
    vae = AutoencoderKLWan(base_dim=4, z_dim=CHANNELS, num_res_blocks=1, **(TI2V_VAE if ti2v else {}))
    words = ["<pad>", "</s>", "<unk>", *"▁abcdefghijklmnopqrstuvwxyz"]
    unigram = Tokenizer(models.Unigram([(word, -float(i)) for i, word in enumerate(words)], unk_id=2))
    unigram.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer = T5TokenizerFast(tokenizer_object=unigram, extra_ids=0)
    config = UMT5Config(vocab_size=64, d_model=TEXT, d_kv=8, d_ff=32, num_layers=1, num_heads=2, num_decoder_layers=1)
    scheduler = UniPCMultistepScheduler(prediction_type="flow_prediction", use_flow_sigmas=True, flow_shift=3.0)
    return WanPipeline(
        tokenizer=tokenizer,
        text_encoder=UMT5EncoderModel(config).eval(),
        vae=vae.eval(),
        scheduler=scheduler,
        transformer=tiny_transformer(layers, seed),
        expand_timesteps=ti2v,
    )


def tiny_folder(folder: Path, layers: int = 3, seed: int = 0, *, ti2v: bool = False) -> Path:
    """A model on disk as diffusers lays it out."""
    tiny_pipeline(layers, seed, ti2v=ti2v).save_pretrained(folder)
    return folder


def tiny_wan(layers: int = 3, seed: int = 0) -> Wan:
    return Wan(tiny_pipeline(layers, seed), "tiny")


def attached(method: str, transformer: nn.Module, *, woken: bool = False, **config: object) -> Adapter:
    """An adapter on its transformer; woken, its weights are random, as if it had been trained."""
    adapter = Adapter(transformer, AdapterConfig(method, **config))
    if woken:
        generator = torch.Generator().manual_seed(3)
        for parameter in adapter.parameters():
            parameter.data += 0.3 * torch.randn(parameter.shape, generator=generator)
    return adapter.attach(transformer)


def seen(adapter: Adapter, transformer: nn.Module, cameras: Cameras, **options: object) -> Tensor:
    with adapter.viewing(cameras, grid=GRID, **options):
        return transformer(**inputs())[0]


def trained(model: Wan, method: str = "crepe") -> Adapter:
    """An adapter whose camera matters, and that was taught to follow maps."""
    adapter = Adapter(model.transformer, AdapterConfig(method))
    generator = torch.Generator().manual_seed(3)
    for parameter in adapter.parameters():
        parameter.data += 0.3 * torch.randn(parameter.shape, generator=generator)
    adapter.accepts_radial_maps = True
    return adapter
