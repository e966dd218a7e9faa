"""How fast clips are taken from panoramas: `python benchmarks/shoot.py`, at 480 x 832, from a still and from a video.

Prints milliseconds of the processor by part, then whole clips: per second of a core, and by the clock.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import torch
from torch import Tensor

from curvedray.bench.harness import hardware
from curvedray.cameras.named_lenses import named_lens
from curvedray.data.clips import VideoShape
from curvedray.data.panoramas import Panorama
from curvedray.data.shoot import CRF, PRESET, in_passes, shoot_clips
from curvedray.data.shot_jobs import ShotJob, plan_shots
from curvedray.data.sphere_pyramid import Pyramid, View, look_planes, pyramid_of
from curvedray.media.image import write_png
from curvedray.media.video import write_planes, write_video
from curvedray.moves.trajectory import trajectory
from curvedray.world.panorama import panorama_frames
from curvedray.world.world import scene

PRESETS = (("superfast", 14), ("ultrafast", 14), (PRESET, CRF))


def timed(work: Callable[[], object], times: int) -> float:
    """Seconds of the processor per call, after one that warms up."""
    work()
    start = time.process_time()
    for _ in range(times):
        work()
    return (time.process_time() - start) / times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=81)
    parser.add_argument("--clips", type=int, default=8)
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2])
    said = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{hardware()}; clips of {said.frames} x 480 x 832, fisheye-150")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        still, video = _panoramas(folder, said.frames)
        _parts(still)
        for kind, panorama in (("still", still), ("video", video)):
            for workers in said.workers:
                _whole(kind, panorama, folder / f"{kind}-{workers}", said.frames, said.clips, workers)


def _panoramas(folder: Path, frames: int) -> tuple[Panorama, Panorama]:
    """A court at 4096 x 2048, as a still, and turning as a video of 2048 x 1024."""
    picture, _ = next(panorama_frames(scene(3).scene, torch.eye(4)[None], 2048, samples=1))
    fine = torch.from_numpy(picture)
    write_png(fine, folder / "still.png")
    small = fine[::2, ::2]
    write_video(torch.stack([small.roll(8 * i, 1) for i in range(frames)]), folder / "video.mp4", 16.0, preset=PRESET)
    return Panorama(folder / "still.png", id="still"), Panorama(folder / "video.mp4", id="video")


def _parts(panorama: Panorama) -> None:
    lens = named_lens("fisheye-150", 832, 480)
    view, image = View.of(lens), next(panorama.frames(0, 1))
    used = view.used(image.shape[1])
    pyramid, again = pyramid_of(image, *used), pyramid_of(image, *used)
    turns = trajectory("pan right 20deg", lens, 17).world_from_camera[:, :3, :3]
    clip = torch.empty(17, 720, 832, dtype=torch.uint8)
    with tempfile.TemporaryDirectory() as folder:
        seconds = {
            "a lens made ready": timed(lambda: View.of(lens), 3),
            f"a still of {image.shape[1]} x {image.shape[0]} made ready": timed(lambda: pyramid_of(image, *used), 2),
            "a frame of a video of that size made ready": timed(lambda: pyramid_of(image, *used, into=again), 3),
            "a frame looked at": timed(lambda: _look(pyramid, view, turns, clip), 2) / 17,
            "a frame encoded": timed(lambda: write_planes(clip, Path(folder) / "a.mp4", crf=CRF, preset=PRESET), 2)
            / 17,
        }
    for part, took in seconds.items():
        print(f"{part}: {1000 * took:.1f} ms")
    _look(pyramid, view, turns, clip)
    for preset, crf in PRESETS:
        print(f"encoded at {preset}, crf {crf}: {_quality(clip, preset, crf)}")


def _quality(clip: Tensor, preset: str, crf: int) -> str:
    """What an encoding of planes takes, and how far its luma is from theirs."""
    import av

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.mp4"
        took = timed(lambda: write_planes(clip, path, crf=crf, preset=preset), 1) / len(clip)
        size = path.stat().st_size / len(clip)
        with av.open(str(path)) as container:
            read = [torch.from_numpy(frame.to_ndarray(format="yuv420p")) for frame in container.decode(video=0)]
    apart = (torch.stack(read)[:, :480].float() - clip[:, :480].float()).square().mean()
    return f"{1000 * took:.1f} ms, {size / 1000:.1f} kB per frame, {10 * torch.log10(255**2 / apart):.1f} dB"


def _look(pyramid: Pyramid, view: View, turns: Tensor, clip: Tensor) -> None:
    for frame, turn in zip(clip, turns, strict=True):
        look_planes(pyramid, view, turn, frame)


def measured(jobs: list[ShotJob]) -> float:
    """Seconds of the processor that a pass over a panorama takes."""
    start = time.process_time()
    for shot in shoot_clips(jobs):
        assert not shot.failure, shot.failure
    return time.process_time() - start


def _whole(kind: str, panorama: Panorama, folder: Path, frames: int, clips: int, workers: int) -> None:
    jobs = plan_shots([panorama], clips, folder, VideoShape(frames, 480, 832), lenses=["fisheye-150"])
    with ProcessPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        list(
            pool.map(measured, [[i] for i in plan_shots([panorama], workers, folder / "first", VideoShape(1, 32, 32))])
        )
        start = time.perf_counter()
        cpu = sum(pool.map(measured, in_passes(jobs)))
        took = time.perf_counter() - start
    per_core, clock = clips / cpu, clips / took
    print(
        f"{kind}, {workers} workers: {per_core:.2f} clips ({frames * per_core:.0f} frames) per second of a core,",
        end=" ",
    )
    print(f"{clock:.2f} clips per second by the clock")


if __name__ == "__main__":
    main()
