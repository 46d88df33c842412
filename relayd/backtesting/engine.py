"""Computes the steps of a replay, in this process or on a Dask cluster."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from planner.model.errors import InputError, not_installed
from relayd.backtesting.history import StepSamples
from relayd.backtesting.replay import Scene, Tally, replay
from relayd.version import __version__

CONNECT_S = 10.0
STEPS_A_WORKER = 2
"""That are on the cluster at once: more would only fill memory."""


def replay_all(steps: Iterable[StepSamples], scene: Scene, dask: str | None = None) -> Tally:
    """Replay steps and add them up in their order.

    Parameters
    ----------
    steps : iterable of StepSamples
        The oldest first.
    scene : Scene
    dask : str, optional
        Address of the scheduler of a running cluster, such as ``tcp://10.0.0.1:8786``.

    Raises
    ------
    InputError
        If the cluster can't be used.
    """
    total = Tally.empty(scene)
    for tally in _on_cluster(steps, scene, dask) if dask else _here(steps, scene):
        total.add(tally)
    return total


def _here(steps: Iterable[StepSamples], scene: Scene) -> Iterator[Tally]:
    return (replay(step, scene) for step in steps)


def _on_cluster(steps: Iterable[StepSamples], scene: Scene, address: str) -> Iterator[Tally]:
    try:
        from distributed import Client
    except ImportError:
        raise not_installed("distributed", "dask", "use a Dask cluster") from None
    try:
        client = Client(address, timeout=CONNECT_S, set_as_default=False)
    except (OSError, ValueError) as error:
        raise InputError(
            "--dask",
            f"no scheduler of a Dask cluster answers ({str(error)[:200]})",
            value=address,
            remedy="Give its address, such as tcp://10.0.0.1:8786.",
        ) from None
    with client:
        workers = _same_everywhere(client, address)
        told = client.scatter(scene, broadcast=True)
        waiting: deque[Any] = deque()
        for step in steps:
            # As data of its own: in the task it would be copied, with a warning.
            there = client.scatter(step, hash=False)
            waiting.append(client.submit(replay, there, told, pure=False))
            if len(waiting) >= STEPS_A_WORKER * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _same_everywhere(client: Any, address: str) -> int:
    """Return the number of workers, all of which must have this version of relayd."""
    try:
        versions: dict[str, str] = client.run(version_here)
    except (ImportError, AttributeError) as error:
        raise InputError(
            "--dask",
            f"its workers can't load relayd ({error})",
            value=address,
            remedy=f"Install relayd {__version__} where they run.",
        ) from None
    others = {where: version for where, version in versions.items() if version != __version__}
    if others or not versions:
        problem = (
            f"relayd here is {__version__} and {next(iter(others.values()))} at "
            f"{next(iter(others))}"
            if others
            else "has no workers"
        )
        raise InputError(
            "--dask", problem, value=address, remedy="Start workers that have the same version."
        )
    return len(versions)


def version_here() -> str:
    """Return the version of relayd in the process that runs this."""
    return __version__
