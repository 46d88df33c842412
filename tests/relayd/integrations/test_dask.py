"""Dask on a cluster of processes: shuffles of data frames reduce where relayd says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.relayd.integrations.engines import example_of, result_of

pytestmark = pytest.mark.engines

# The page's example, a join with another frame, and a worker without a region.
SCRIPT = """
import json, os, time
from collections import Counter
import dask, numpy as np, pandas as pd
from distributed import Client, Nanny, Scheduler, SpecCluster, Worker, wait
from planner.model.errors import InputError
from relayd.integrations.dask import CONNECTIONS, SendOver

ROWS = {"azure:eastus": 30_000, "aws:us-east-1": 25_000, "aws:ap-northeast-1": 5_000}
PLAIN = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}

def written(region, rows):
    draw = np.random.default_rng(rows)
    table = pd.DataFrame({"customer": draw.integers(0, 5_000, rows), "usd": draw.random(rows)})
    table.to_parquet(name := f"{region.replace(':', '-')}.parquet")
    return region, name

def where(client, data):
    regions = {
        address: next(iter(worker["resources"]), "")
        for address, worker in client.scheduler_info(n_workers=-1)["workers"].items()
    }
    wait(data)
    return dict(Counter(regions[held[0]] for held in client.who_has(data).values()))

def most_held_in(client, data):
    regions = {
        address: next(iter(worker["resources"]), "")
        for address, worker in client.scheduler_info(n_workers=-1)["workers"].items()
    }
    sizes, held = client.nbytes(summary=False), Counter()
    for key, places in client.who_has(data).items():
        held[regions[min(places)]] += sizes[key]
    return max(held, key=held.__getitem__)

def slowly(table):
    time.sleep(0.05)
    return table

def sent_from_elsewhere(cluster, client, region):
    # How many of 40 parts, all in one region, another one sends: with the plugin and without.
    (home,) = (a for a, w in client.scheduler_info(n_workers=-1)["workers"].items()
               if region in w["resources"])
    table = pd.DataFrame({"customer": range(5_000)})
    made = [client.submit(table.sample, 5_000, random_state=n, workers=[home]) for n in range(40)]
    frame = dd.from_delayed(made, meta=table, verify_meta=False).persist()
    wait(frame)
    cluster.sync(cluster.scheduler.extensions["stealing"].start)
    stolen = []
    for again in (False, True):
        began = time.time()
        client.get_task_stream()
        slow = frame.map_partitions(slowly, meta=table)
        out = slow.shuffle("customer", npartitions=30 + again).persist()
        wait(out)
        sent = [task for task in client.get_task_stream(start=began)
                if str(task["key"]).startswith("('shuffle-transfer")]
        stolen.append([len(sent), sum(task["worker"] != home for task in sent)])
        client.unregister_scheduler_plugin("relayd-reduce-where") if not again else None
    return stolen

if __name__ == "__main__":
    files = [written(*item) for item in ROWS.items()]
    workers = {
        region: {"cls": Nanny, "options": {"nthreads": 1, "resources": {region: 1}, **PLAIN}}
        for region in ROWS
    }
    scheduler = {"cls": Scheduler, "options": PLAIN}
    with SpecCluster(workers=workers, scheduler=scheduler) as cluster:
        ADDRESS = cluster.scheduler_address
        # Parts stay with the worker that read them, however busy the machine is.
        cluster.sync(cluster.scheduler.extensions["stealing"].stop)
        exec(EXAMPLE)
        # A busy worker's part may have gone to another one before it was planned for.
        most = most_held_in(client, orders)
        found = [where(client, by_customer), plan.partitions_in, len(by_customer)]
        prices = dd.from_pandas(pd.DataFrame({"customer": range(5_000)}), npartitions=3)
        joined = orders.merge(prices, on="customer", npartitions=30, broadcast=False).persist()
        found += [where(client, joined), len(joined)]
        found += [str(plan), most]
        found.append(sent_from_elsewhere(cluster, client, most))
        apart = shuffle_plan(client, orders, partitions=30, connections=64)
        client.register_plugin(SendOver(apart))
        setting = [client.run(dask.config.get, "distributed.p2p.comm.concurrency")]
        client.unregister_worker_plugin("relayd-send-over")
        setting.append(client.run(dask.config.get, "distributed.p2p.comm.concurrency"))
        region_of = {address: name for name, worker in cluster.workers.items()
                     for address in [worker.worker_address]}
        found.append([{region_of[a]: n for a, n in one.items()} for one in setting])
        found += [apart.transfers.connections, CONNECTIONS]
        client.close()
    stray = {0: {"cls": Worker, "options": PLAIN}}
    with SpecCluster(workers=stray, scheduler=scheduler) as cluster, Client(cluster) as client:
        try:
            shuffle_plan(client, client.scatter([1]), partitions=2)
        except InputError as error:
            found.append(str(error))
    print("RESULT", json.dumps(found))
"""


def test_data_frames_are_reduced_where_relayd_says(tmp_path: Path) -> None:
    for package in ("distributed", "pandas", "pyarrow"):
        pytest.importorskip(package)
    example = example_of("dask.md", {'"tcp://scheduler:8786"': "ADDRESS"})
    script = tmp_path / "job.py"
    script.write_text(f"EXAMPLE = {example!r}\n{SCRIPT}")
    run = f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')"
    shuffled, planned, rows, joined, joined_rows, told, most, *rest = result_of(run, tmp_path)
    stolen, setting, connections, usual, refused = rest
    assert shuffled == planned == joined
    assert sum(planned.values()) == 30
    assert max(planned, key=planned.__getitem__) == most
    assert len(planned) == 3
    assert rows == joined_rows == 60_000
    assert stolen[0] == [40, 0]
    assert stolen[1][1] > 0
    # Far regions need more than Dask's own number to fill their path.
    assert setting[0] == connections
    assert max(connections.values()) > usual
    assert set(setting[1].values()) == {usual}
    assert "in no region" in refused
    assert "--resources" in refused
    assert "azure:eastus: " in told
