"""From version 5 to 6: links and origins, and what samples say in columns; on both engines."""

from __future__ import annotations

import pytest

from planner.model.estimate import Figures, Origin
from planner.model.link_states import LinkState
from probes.samples import Sample
from relayd.store import Store, open_store
from relayd.store.campaigns.spending import Spending
from relayd.store.links.states import LinkStates
from relayd.store.metadata import Metadata
from relayd.store.samples.ingest import append
from tests.relayd.store.engines import Spot

_OLD = 5
_SAMPLES = {
    '{"address": "private", "min_ms": 1.0}': ("private", False, None),
    '{"address": "public", "intervals": 9, "new_level": true}': ("public", True, 9),
    '{"path": ["a", "b"], "new_level": true}': (None, True, None),
    '{"intervals": 12}': (None, False, 12),
    '{"intervals": "many", "note": "100 %"}': (None, False, None),
    "": (None, False, None),
}
FILL_FIRST = [
    "INSERT INTO regions (id, name) VALUES (1, 'aws:a'), (2, 'gcp:b')",
    "INSERT INTO metrics (id, name) VALUES (1, 'rtt_ms')",
    "INSERT INTO setups VALUES (1, 'ping', '', '', '', '')",
    "INSERT INTO batches VALUES (1000, 'live', 'live', NULL, '{}', '0', 1.5e9, 9, 6, 0, '{}')",
    *(
        f"INSERT INTO samples VALUES (1, 2, 1, 1.5e9, {n}.5, 0, 0, 0, 1, "
        f"{n if detail else 0}, '{detail}', 1000, {n})"
        for n, detail in enumerate(_SAMPLES, start=1)
    ),
    *(
        "INSERT INTO snapshots (key, id, as_of_s, created_at_s, source, catalogue_digest, "
        f"samples_through) VALUES ({key}, 's{key}', 1.5e9, 1.5e9, 'mixed', 'c', 9)"
        for key in (1, 2)
    ),
    *(
        f"INSERT INTO legs VALUES ({key}, {ends}, 1, 2, 3, 'measured', 1.5e9, 4, NULL, "
        "10, 20, 30, 'inferred', NULL, 0, 'window 3.00 MB (measured) / RTT 2 ms (measured)', "
        "4, 5, 6, 'baseline', NULL, 0, 'aws to gcp law, error up to 6%', 0.25)"
        for key in (1, 2)
        for ends in ("1, 2", "2, 1")
    ),
    *(
        f"INSERT INTO sites VALUES ({key}, {place}, {region}, 'aws:m5', "
        "4, 5, 6, 'baseline', NULL, 0, 'a list', 4, 5, 6, 'baseline', NULL, 0, 'a list', "
        "2, 3, 4, 'inferred', 1.4e9, 7, 'flows into other aws:m5')"
        for key in (1, 2)
        for place, region in ((0, 2), (1, 1))
    ),
    "UPDATE snapshots SET legs = 2, sites = 2",
]
"""What a store of any version up to this one may hold."""
_FILL = [
    "INSERT INTO leg_states VALUES (1, 2, 'down', 1.5e9, 'seen', NULL, 1, 0, 9e9, '{}')",
    "INSERT INTO watch_marks VALUES ('due', 7.5)",
    "INSERT INTO watch_spending VALUES ('2026-01-01', 'light', 2, 1, 0.5)",
    "INSERT INTO events (at_s, kind, subject, detail) VALUES (1.5e9, 'leg', 'aws:a>gcp:b', '{}')",
]


@pytest.fixture
def old(spot: Spot) -> Spot:
    """A store that the version before has left."""
    spot.lay_out(_OLD)
    for statement in (*FILL_FIRST, *_FILL):
        spot.outsider(statement)
    return spot


def test_links_keep_their_figures_and_the_sentence_of_their_origin(old: Spot) -> None:
    with open_store(old.where, mode="write") as store:
        assert [(row.id, row.links, row.sites) for row in store.snapshots.list()] == [
            ("s2", 2, 2),
            ("s1", 2, 2),
        ]
        links = list(store.snapshots.links("s1"))
        assert [(link.src, link.dst, link.loss_pct) for link in links] == [
            ("aws:a", "gcp:b", 0.25),
            ("gcp:b", "aws:a", 0.25),
        ]
        found = store.snapshots.links("s2", ("aws:a", "gcp:b"))
        assert list(found.between("aws:a", "gcp:b")) == links[:1]
        rtt, flow, aggregate = links[0].rtt_ms, links[0].per_flow_mbps, links[0].aggregate_gbps
        assert (rtt.low, rtt.expected, rtt.high) == (1, 2, 3)
        assert rtt.origin == Origin("measured", "unknown", 4, newest_s=1.5e9)
        assert (rtt.basis, rtt.samples, rtt.measured_at_s) == ("", 4, 1.5e9)
        assert (flow.low, flow.expected, flow.high, flow.source) == (10, 20, 30, "inferred")
        assert flow.basis == "window 3.00 MB (measured) / RTT 2 ms (measured)"
        assert aggregate.origin == Origin(
            "baseline", "unknown", figures=Figures(note="aws to gcp law, error up to 6%")
        )
        sites = store.snapshots.sites("s1")
        assert [site.region for site in sites] == ["gcp:b", "aws:a"]
        assert sites[0].window_mb.measured_at_s == 1.4e9
        assert sites[0].window_mb.basis == "flows into other aws:m5"
        _can_be_pruned(store, old)


def _can_be_pruned(store: Store, old: Spot) -> None:
    with pytest.raises(old.integrity_error, match="immutable"):
        old.outsider("DELETE FROM link_blocks")
    assert store.snapshots.prune(keep=1) == ["s1"]
    for table in ("link_blocks", "sites", "origins"):
        assert store.database.rows(f"SELECT DISTINCT snapshot_key FROM {table}") == [(2,)]


def test_samples_say_in_columns_what_their_detail_said(old: Spot) -> None:
    with open_store(old.where, mode="write") as store:
        found = list(store.samples.read())
        said = {s.detail: (s.address, s.new_level, s.intervals) for s in found}
        assert said == _SAMPLES
        with pytest.raises(old.integrity_error, match="append-only"):
            old.outsider("UPDATE samples SET address = NULL")
        (plain,) = (sample for sample in found if not sample.detail)
        again = Sample("aws:a", "gcp:b", "rtt_ms", plain.value, 1.5e9, "ping")
        assert append(store, [again]).duplicates == 1
        counts = "SELECT count(*), count(address), sum(new_level) FROM measurements"
        assert old.outsider(counts) == [(len(_SAMPLES), 2, 2)]
    old.check()


def test_what_the_watcher_keeps_has_its_new_names(old: Spot) -> None:
    with open_store(old.where, mode="write") as store:
        state = LinkStates(store.database).now(1.6e9)["aws:a", "gcp:b"]
        assert isinstance(state, LinkState)
        assert state.condition == "down"
        assert Metadata(store.database).get("due") == 7.5
        spent = store.database.rows("SELECT kind, spent_usd FROM watch_spending")
        assert spent == [("liveness", 1.0)]
        assert Spending(store.database).committed_usd("2026-01-01") > 0


def test_both_ways_to_version_6_lead_to_the_same_schema(old: Spot) -> None:
    fresh = old.another()
    open_store(fresh.where, mode="create").close()
    open_store(old.where, mode="write").close()
    assert old.columns() == fresh.columns()
    assert not [name for name in old.columns() if "leg" in name[0] or "mark" in name[0]]
