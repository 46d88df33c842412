"""What is known of links as JSON."""

from __future__ import annotations

import time
from statistics import median

from relayd.http.responses.encoding import encoded
from relayd.questions.ages import old_prices
from relayd.sources.wan import Wan
from relayd.tables.figures import knowledge, pairs_by_price


def knowledge_bytes(wan: Wan) -> bytes:
    """Return what is known of links, and which prices are old, as JSON."""
    now_s = time.time()
    found = knowledge(wan.network, now_s)
    times_s = found.sampled_at_s.tolist()
    return encoded(
        {
            **found.links,
            "outlived": found.outlived,
            "newest_sample_s": max(times_s, default=None),
            "median_sample_s": median(times_s) if times_s else None,
            "old_prices": old_prices(
                wan.catalogue, pairs_by_price(wan.network, wan.catalogue), now_s
            ),
        }
    )
