"""Labs for tests that need real namespaces; skipped where the machine can't have them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest

from planner.model.errors import RelaydError
from probes.lab.controller import Lab, labs
from probes.lab.linux import check_machine
from probes.lab.topology import Topology
from tests.lab.quiet import judged_if_quiet


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Judge a test that measures only while the machine is quiet."""
    if pyfuncitem.get_closest_marker("alone") is None:
        return (yield)
    with judged_if_quiet():
        return (yield)


@pytest.fixture(scope="session")
def machine() -> None:
    """Skip where no lab can run, or where tests could not look into it."""
    try:
        check_machine()
    except RelaydError as error:
        pytest.skip(str(error))
    if os.geteuid() != 0:
        pytest.skip("looking into the sites of a lab needs root")


@pytest.fixture(scope="session")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("labs")
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def lab_of(machine: None, _folder: Path) -> Iterator[Callable[..., Lab]]:
    """Bring labs up that are taken down after the module's tests."""
    before = os.environ.get("RELAYD_LAB_DIR")
    os.environ["RELAYD_LAB_DIR"] = str(_folder / "labs")

    def bring_up(topology: Topology, name: str = "test") -> Lab:
        lab = Lab(name)
        lab.up(topology, ends_with_caller=True)
        return lab

    try:
        yield bring_up
    finally:
        for lab in labs():
            lab.down()
        if before is None:
            del os.environ["RELAYD_LAB_DIR"]
        else:
            os.environ["RELAYD_LAB_DIR"] = before
