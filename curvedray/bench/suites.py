"""The benchmarks there are, by name, each yielding measurements."""

from collections.abc import Callable, Iterator

from curvedray.bench.harness import Measurement

Suite = Callable[[bool], Iterator[Measurement]]


def attention(quick: bool) -> Iterator[Measurement]:
    """Curved-ray attention beside plain attention."""
    from curvedray.bench.attention import measure

    return measure(quick)


def adapter(quick: bool) -> Iterator[Measurement]:
    """A denoising step with the adapter beside one without."""
    from curvedray.bench.adapter import adapter_share

    share = adapter_share(repeats=3 if quick else 5)
    tokens = f"{share.grid.frames} x {share.grid.rows} x {share.grid.cols} tokens"
    yield Measurement(f"step with adapter / backbone's step, processor time, {tokens}", share.time, target=1.10)
    yield Measurement(f"the same, peak memory, {tokens}", share.memory)
    yield Measurement(f"the same, operations, {tokens}", share.operations)
    yield Measurement("the same, operations, 21 x 30 x 52 tokens", share.operations_full_grid)


def training(quick: bool) -> Iterator[Measurement]:
    """The training loop on the embedded recipe."""
    from curvedray.bench.training import training_throughput

    result = training_throughput(steps=10 if quick else 40)
    yield Measurement(f"training the embedded adapter, a step of {result.batch} clips", result.seconds, "s")
    yield Measurement("the same, time in forward, backward and optimiser", 100 * result.busy, "%", 90, at_least=True)


SUITES: dict[str, Suite] = {"attention": attention, "adapter": adapter, "training": training}
