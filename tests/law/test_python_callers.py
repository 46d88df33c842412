"""Whatever form a question is written in, a store, a service and a mirror answer it alike.

Each case was answered in two ways once, or by one of the three alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pytest

import relayd
from planner.model.errors import InfeasibleError, InputError
from relayd.catalogue.loading import load_catalogue
from relayd.client.blocking import RemoteWan
from relayd.sources.memory import MemorySource
from relayd.sources.wan import Wan
from tests.http.running import served
from tests.law.states import DST, REGIONS, RELAY, SRC, verified

AnyWan: TypeAlias = Wan | RemoteWan
MACHINES = [{"id": "x", "region": SRC, "cpus": 4}, {"id": "y", "region": DST, "cpus": 4}]
TASKS = [{"id": "a", "cpus": 4}, {"id": "b", "cpus": 4}]


@pytest.fixture(scope="module")
def wans(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, AnyWan]]:
    """Open a store with a failed verification of a relay in every way there is."""
    folder = tmp_path_factory.mktemp("verified")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RELAYD_CACHE_DIR", str(folder / "cache"))
        state = verified(folder)
        with served(state.db) as service:
            opened: dict[str, AnyWan] = {
                "store": relayd.open(state.db),
                "service": relayd.open(service.url),
                "mirror": relayd.open(service.url, mirror=True),
            }
            yield opened
            for wan in opened.values():
                wan.close()


def _transfer(wan: AnyWan, **options: Any) -> relayd.Plan:
    return wan.plan(SRC, DST, objective="time", **options)


def _schedule(wan: AnyWan) -> Any:
    first = wan.schedule([{"id": "a", "src": SRC, "dst": DST, "volume_gb": 50}], now_s=0)
    return wan.schedule(
        [{"id": "b", "src": SRC, "dst": RELAY, "volume_gb": 50}],
        existing=first.model_dump("json"),
        now_s=10,
    )


ASKED: dict[str, Callable[[AnyWan], Any]] = {
    "after a failed verification": _transfer,
    "with a VM type of an unrelated region": lambda wan: _transfer(
        wan, vm_types={"aws:eu-west-1": "aws:t2.micro"}
    ),
    "all candidates, with their bounds": lambda wan: _transfer(wan, candidates=len(REGIONS)),
    "machines by keyword": lambda wan: wan.place_tasks(
        TASKS, [{"src": "a", "dst": "b", "volume_gb": 5}], machines=MACHINES
    ),
    "a plan in progress as JSON": lambda wan: wan.replan(
        _transfer(wan).model_dump_json(), moved_gb=20, elapsed_s=300
    ),
    "an existing schedule as a dict": _schedule,
    "a volume and a deadline as text": lambda wan: wan.plan(
        SRC, DST, volume_gb="1TB", deadline_s="2h"
    ),
    "the same without units in the names": lambda wan: wan.plan(  # type: ignore[call-arg]
        SRC, DST, volume="1TB", deadline="2h"
    ),
    "one rule given as a string": lambda wan: wan.plan(SRC, DST, avoid="provider:azure"),
}
REFUSED: dict[str, tuple[Callable[[AnyWan], Any], type[Exception], str]] = {
    "an unknown keyword": (lambda wan: wan.plan(SRC, DST, colour="red"), InputError, "colour"),  # type: ignore[call-arg]
    "a number without a unit": (lambda wan: wan.plan(SRC, DST, volume=5), InputError, "volume"),  # type: ignore[call-arg]
    "a volume given twice": (
        lambda wan: wan.plan(SRC, DST, volume_gb=5, volume="1TB"),  # type: ignore[call-arg]
        InputError,
        "volume",
    ),
    "more than the VMs carry": (
        lambda wan: wan.plan(SRC, DST, min_throughput_gbps=100),
        InfeasibleError,
        "vms",
    ),
}


@pytest.mark.parametrize("asked", ASKED)
def test_the_answer_is_the_same(wans: dict[str, AnyWan], asked: str) -> None:
    answers = {name: ASKED[asked](wan) for name, wan in wans.items()}
    assert {type(answer) for answer in answers.values()} == {type(answers["store"])}
    expected = answers["store"].model_dump_json()
    for name, answer in answers.items():
        assert answer.model_dump_json() == expected, name


@pytest.mark.parametrize("asked", REFUSED)
def test_the_refusal_is_the_same(wans: dict[str, AnyWan], asked: str) -> None:
    ask, kind, word = REFUSED[asked]
    texts = set()
    for wan in wans.values():
        with pytest.raises(kind, match=word) as refused:
            ask(wan)
        assert type(refused.value) is kind
        texts.add(str(refused.value).replace("RemoteWan", "Wan"))
    assert len(texts) == 1
    assert "--" not in texts.pop()


def test_a_failed_verification_is_part_of_what_a_plan_id_stands_for(
    wans: dict[str, AnyWan],
) -> None:
    """The relay carried half: no more is expected of it, and the plan's id is new."""
    network = wans["store"].network.with_(verified={})
    before = Wan(MemorySource(load_catalogue(), network))
    shown, hoped = (_transfer(wan, relays=RELAY) for wan in (wans["store"], before))
    assert shown.best_relay
    assert hoped.best_relay
    assert shown.best_relay.throughput_gbps <= 0.6 * hoped.best_relay.throughput_gbps
    assert hoped.verdict == "relay"  # right under both readings of slow links
    assert shown.snapshot == hoped.snapshot
    assert shown.plan_id != hoped.plan_id
    assert _low_gbps(shown) <= 0.6 * _low_gbps(hoped)


def _low_gbps(plan: relayd.Plan) -> float:
    options = [option for option in (plan.best_relay, *plan.alternatives) if option]
    (low,) = (option.throughput_gbps_low for option in options if option.relay == RELAY)
    assert low is not None
    return low
