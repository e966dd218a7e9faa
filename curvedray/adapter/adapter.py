"""The Geometric Attention Adapter: branches beside a frozen transformer's self-attention, and what they see.

adapter = Adapter(transformer, AdapterConfig(method="crepe"))
adapter.attach(transformer)
with adapter.viewing(cameras, grid=grid):
    velocity = transformer(...)          # and backward, too: with gradient checkpointing blocks run again in it
"""

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor, nn

from curvedray.adapter.branches import AttentionCopy, GeometricAttention, RadialFeature, RadialHead
from curvedray.adapter.config import METHODS, AdapterConfig
from curvedray.adapter.view import View, view_of
from curvedray.cameras import Cameras, TokenGrid
from curvedray.errors import InputError
from curvedray.models.interface import BaseIdentity, self_attentions
from curvedray.radial.interval import RadialInterval


class Adapter(nn.Module):
    """The trained part of a camera-controlled model. It holds its weights, never the transformer's.

    `predictions` has the interval that each curved block predicted in the last pass, by block: for the radial loss and
    for pictures. `accepts_radial_maps` says that it was trained with MixForcing; `notes` travel in its file.
    """

    def __init__(
        self,
        transformer: nn.Module,
        config: AdapterConfig | None = None,
        *,
        seed: int = 0,
        base: BaseIdentity | None = None,  # the transformer it was trained on, where its file says so
    ):
        super().__init__()
        self.config = config or AdapterConfig()
        self.base = base or BaseIdentity.of(transformer)
        self.accepts_radial_maps = False
        self.notes: dict[str, Any] = {}
        self.predictions: dict[int, RadialInterval] = {}
        self._view: View | None = None
        self._enabled = True
        self._hooks: list[torch.utils.hooks.RemovableHandle] = []
        self._froze: list[nn.Parameter] = []
        self._host: weakref.ref[nn.Module] | None = None
        self.host_identity: BaseIdentity | None = None  # of the transformer it is attached to, as it was then
        _check_free(transformer)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self._build(transformer)

    def _build(self, transformer: nn.Module) -> None:
        dim, depth = self.base.dim, self.base.depth
        rule, curved = self.config.rule, self.config.curved(depth)
        blocks: list[nn.Module] = []
        for index, attention in enumerate(self_attentions(transformer)):
            kind = rule.curved if index in curved else rule.outside
            if kind is not None and kind.copies:
                blocks.append(AttentionCopy(self.config, kind, attention, dim))
            elif kind is not None:
                blocks.append(GeometricAttention(self.config, kind, dim))
        self.blocks = nn.ModuleList(blocks)
        self.radial_head = RadialHead(dim, self.config.log_radius) if rule.predicts_radius else None
        self.radial_feature = RadialFeature(dim) if self.config.has_radius_feature(rule.curved) else None
        self.to(next(transformer.parameters()).device)

    @property
    def head_width(self) -> int:
        return self.config.branch_width(self.base.dim) // self.config.heads

    @property
    def supervised_blocks(self) -> tuple[int, ...]:
        """The blocks whose predictions the radial loss sees."""
        return self.config.supervised(self.base.depth)

    # -- on and off the transformer

    def attach(self, transformer: nn.Module, *, any_weights: bool = False) -> "Adapter":
        """Run beside this transformer's self-attention from now on, and freeze its weights.

        It must be the one the adapter was made for; `any_weights` allows others of the same shape, a finetune say.
        """
        if self._host is not None:
            raise InputError("adapter", "an adapter that is not attached", "one that is", "Call detach() first.")
        _check_free(transformer)
        identity = BaseIdentity.of(transformer)
        check_base(self.base, identity, any_weights)
        self.host_identity = identity
        self._froze = [p for p in transformer.parameters() if p.requires_grad]
        for parameter in self._froze:
            parameter.requires_grad_(False)
        if self.blocks:
            for index, attention in enumerate(self_attentions(transformer)):
                self._hooks.append(attention.register_forward_hook(self._beside(index), with_kwargs=True))
        self._host = weakref.ref(transformer)
        return self

    def is_attached_to(self, transformer: nn.Module) -> bool:
        return self._host is not None and self._host() is transformer

    def detach(self) -> None:
        """Leave the transformer as it was before `attach`."""
        for hook in self._hooks:
            hook.remove()
        for parameter in self._froze:
            parameter.requires_grad_(True)
        self._hooks, self._froze, self._host, self.host_identity = [], [], None, None

    @contextmanager
    def viewing(
        self,
        cameras: Cameras,
        *,
        grid: TokenGrid,
        radial: tuple[RadialInterval, Bool[Tensor, "*b n"]] | None = None,
    ) -> Iterator[View]:
        """Passes inside this block see these cameras (one per frame or one per latent frame, for all clips or each).

        `radial` replaces predicted intervals where its mask holds: a teacher's in MixForcing, a user's map at
        inference. Keep the block open until after backward. The view is a plain attribute, because on GPUs the
        recomputation of gradient checkpointing runs on another thread.
        """
        if radial is not None and not self.config.rule.predicts_radius:
            expected = f"a method that predicts radii ({', '.join(i for i in METHODS if METHODS[i].predicts_radius)})"
            raise InputError("radial map", expected, f"method {self.config.method}")
        before = self._view
        device = next((p.device for p in self.parameters()), cameras.world_from_camera.device)
        given = None if radial is None else (radial[0].to(device), radial[1].to(device))
        with torch.autocast(device.type, enabled=False):
            self._view = view_of(self.config, self.head_width, _unbatched(cameras), grid, given, device)
        self.predictions = {}
        try:
            yield self._view
        finally:
            self._view = before

    @contextmanager
    def disabled(self) -> Iterator[None]:
        """Passes inside this block are the backbone's own: what camera guidance guides away from."""
        before, self._enabled = self._enabled, False
        try:
            yield
        finally:
            self._enabled = before

    @contextmanager
    def without_map(self) -> Iterator[None]:
        """Passes inside this block see the cameras and no radial map: what map guidance guides away from."""
        before = self._view
        self._view = before if before is None else replace(before, given=None)
        try:
            yield
        finally:
            self._view = before

    def _beside(self, index: int) -> Any:
        def hook(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Tensor) -> Tensor | None:
            return self._run(index, args, dict(kwargs), output) if self._enabled else None

        return hook

    def _run(self, index: int, args: tuple[Any, ...], kwargs: dict[str, Any], output: Tensor) -> Tensor:
        view = self._view
        if view is None:
            fix = "Run the model, and backward after it, inside `with adapter.viewing(cameras, grid=grid):`."
            raise InputError("adapter", "cameras in view", "none", fix)
        x, rest = (args[0], args[1:]) if args else (kwargs.pop("hidden_states"), ())
        if x.shape[1] != view.grid.tokens:
            raise InputError("grid", f"{x.shape[1]} tokens, as the latents have", f"{view.grid.tokens} of {view.grid}")
        if view.batch_shape not in ((), x.shape[:1]):
            raise InputError("cameras", f"one path, or one for each of {len(x)} clips", view.batch_shape)
        branch = self.blocks[index]
        assert isinstance(branch, AttentionCopy | GeometricAttention)
        shared = (self.radial_head, self.radial_feature) if branch.kinds[0].predicts_radius else (None, None)
        if isinstance(branch, AttentionCopy):
            seen, predicted = branch(x, view, *shared, *rest, **kwargs)
        else:
            added, predicted = branch(x, view, *shared)
            seen = output + added.to(output.dtype)
        if predicted is not None:
            self.predictions[index] = predicted
        return seen.to(output.dtype)


def check_base(expected: BaseIdentity, got: BaseIdentity, any_weights: bool) -> None:
    """Refuse a transformer that is not the one an adapter was made for."""
    shape = ("model", "dim", "depth", "config")
    differs = [f"{name} {getattr(got, name)}" for name in shape if getattr(got, name) != getattr(expected, name)]
    if differs:
        wanted = f"{expected.model} of {expected.depth} blocks and {expected.dim} channels (config {expected.config})"
        raise InputError("base model", wanted, ", ".join(differs), "Load the model this adapter was trained on.")
    if not any_weights and None not in (expected.weights, got.weights) and expected.weights != got.weights:
        fix = "Load the weights it was trained on, or allow others of the same shape with any_weights=True."
        raise InputError("base model", f"weights {expected.weights}", f"weights {got.weights}", fix)


def _check_free(transformer: nn.Module) -> None:
    """One adapter at a time: a second would add to the first in silence."""
    if any(attention._forward_hooks for attention in self_attentions(transformer)):
        raise InputError("transformer", "no hooks on its attention", "another adapter's", "Detach that one first.")


def _unbatched(cameras: Cameras) -> Cameras:
    """Cameras of a batch of one are cameras for all clips."""
    if cameras.batch_shape != (1,):
        return cameras
    lens = cameras.lens[0] if len(cameras.lens.batch_shape) > 1 else cameras.lens
    return Cameras(lens, cameras.world_from_camera[0], cameras.unit, cameras.fps)
