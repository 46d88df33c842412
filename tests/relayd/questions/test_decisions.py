"""Decisions on arrays are those of plans, to the figure."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from planner.model.errors import DataError, InfeasibleError
from relayd.__main__ import main
from relayd.catalogue.loading import load_catalogue
from relayd.questions.holds import Hold, Holds
from relayd.sources.stored import StoredWan
from relayd.sources.wan import Wan
from relayd.store import open_store
from tests.properties import examples
from tests.shared_data import shared

ROWS = 25
POOL, QUOTA = "aws:us-east-1", "aws:eu-west-1"
LIMITS = f"""
[[pool]]
region = "{POOL}"
vm_type = "aws:m5.8xlarge"
vms = 6

[[vcpu_quota]]
region = "aws:*"
family = "L-1216C47A"
vcpus = 192
"""
HELD = Holds(
    (
        Hold("pool", POOL, egress_gbps=7.0, ingress_gbps=21.0, transfer="a"),
        Hold("vms", QUOTA, "aws:m5.8xlarge", 3, transfer="b"),
    ),
    (1, 2),
)
Row = dict[str, Any]


@pytest.fixture(scope="module")
def january(tmp_path_factory: pytest.TempPathFactory) -> list[Wan]:
    """The grid of January 2022, also under quotas and a pool, parts of them held; and models."""
    folder = tmp_path_factory.mktemp("january")
    for what, month in (("throughput", "2022-01"), ("latency", "2022-04")):
        table = shared(f"skyplane/{what}_{month}.csv")
        importer = f"skyplane-{what}"
        assert main(["import", importer, str(table), "--db", str(folder / "grid.db")]) == 0
    limits = folder / "limits.toml"
    limits.write_text(LIMITS)
    plain, limited = (
        StoredWan(load_catalogue(files), folder / "grid.db") for files in ([], [limits])
    )
    open_store(folder / "empty.db", mode="create").close()
    modelled = StoredWan(load_catalogue(), folder / "empty.db")
    return [plain, limited, Wan(limited.catalogue, limited.as_read()).holding(HELD), modelled]


def settings(random: Random, regions: list[str]) -> Row:
    """Return what transfers have in common."""
    found: Row = {"objective": random.choice(["value", "time", "cost"])}
    for name, draw in (
        ("time_value_usd_per_h", lambda: random.choice([0.0, 5.0, 300.0])),
        ("vms_in", lambda: {one: random.randint(1, 5) for one in random.sample(regions, 6)}),
        ("avoid", lambda: random.sample(regions, 20)),
        ("allow", lambda: ["continent:EU"]),
        ("relays", lambda: random.choice(["none", "one", *random.sample(regions, 2)])),
        ("connections", lambda: random.choice([1, 4, 8, 16, 128])),
        ("margin", lambda: random.choice([0.0, 0.3])),
        ("risk", lambda: random.choice(["averse", "bold"])),
        ("vms_running", lambda: True),
        ("month_to_date_gb", lambda: {"*": random.choice([9e3, 1e5])}),
        ("hosts", lambda: "tuned"),
        ("addresses", lambda: "private"),
    ):
        if random.random() < 0.15:
            found[name] = draw()
    if "avoid" in found or "allow" in found:
        found.pop("relays", None)  # which may be forbidden
    return found


def transfer(random: Random, regions: list[str]) -> Row:
    """Return one transfer with limits of its own."""
    src, dst = random.sample([*regions, *[POOL, QUOTA] * 3], 2)
    volume_gb = 10 ** random.uniform(-1, 4.8)
    found: Row = {"src": src, "dst": dst, "volume_gb": volume_gb}
    limit = random.choice(["budget_usd", "deadline_s", "min_throughput_gbps", *[None] * 4])
    draws = {
        "budget_usd": volume_gb * 10 ** random.uniform(-2.5, -0.5),
        "deadline_s": 10 ** random.uniform(1.7, 5),
        "min_throughput_gbps": 10 ** random.uniform(-1, 1.5),
    }
    return found | {name: value if name == limit else None for name, value in draws.items()}


def planned(wan: Wan, row: Row, **common: Any) -> dict[str, Any]:
    """Return what a plan states of a transfer."""
    try:
        plan = wan.plan(**row, **common, details="decision")
    except InfeasibleError:
        return {"verdict": "infeasible"}
    except DataError:
        return {"verdict": "unknown"}
    relays = [region for path in plan.paths for region in path.regions[1:-1]]
    return {
        "verdict": plan.verdict,
        "via": ",".join(relays),
        "src_vms": plan.vms[row["src"]],
        "dst_vms": plan.vms[row["dst"]],
        "relay_vms": sum(plan.vms[name] for name in relays),
        "throughput_gbps": plan.throughput_gbps,
        "throughput_gbps_low": plan.throughput_gbps_low,
        "throughput_gbps_high": plan.throughput_gbps_high,
        "duration_s": plan.duration_s,
        "cost_usd": plan.cost_usd.total,
    }


def compare(wans: list[Wan], count: int, seed: int) -> None:
    """Compare decisions on as many random transfers with plans."""
    random = Random(seed)
    for number in range(count // ROWS):
        wan, splits = random.choice(wans), number % 5 == 0
        regions = wan.known_regions()
        common = settings(random, regions)
        rows = [transfer(random, regions) for _ in range(ROWS)]
        no_ends = {*common.get("avoid", ()), common.get("relays")}
        rows = [r for r in rows if len({r["src"], r["dst"]} - no_ends) == 2]
        for row in rows:
            row["vms"] = random.choice([None, None, 1, 3, 12])
        found = wan.decide(**{n: [r[n] for r in rows] for n in rows[0]}, **common, splits=splits)
        for row, decision in zip(rows, found, strict=True):
            # Where no split can save enough, both are the plan's own.
            single = not splits and bool(decision["split_gain"] != 0)
            expected = planned(wan, row, **common, single_path=single)
            for name, value in expected.items():
                same = value if isinstance(value, str) else pytest.approx(value, rel=1e-9)
                assert decision[name].item() == same, (name, decision, row, common, splits)


def test_decisions_are_those_of_plans(january: list[Wan]) -> None:
    compare(january, examples(400), seed=1)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(10))
def test_ten_thousand_decisions_are_those_of_plans(january: list[Wan], seed: int) -> None:
    compare(january, 1000, seed=100 + seed)
