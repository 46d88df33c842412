"""A plan as a script that copies one bucket to another: by a store, or by a service."""

from __future__ import annotations

from dataclasses import replace

from planner.model.errors import InputError
from relayd.catalogue.copies import copies, filled
from relayd.emitting.lanes import Emission
from relayd.emitting.text import header, script, summary

SERVER_SIDE = "The store copies by itself: one machine asks it to, and no VM carries data."
_DIRECT = "Ask for --relays none."
_RCLONE = {
    "s3": ":s3,provider=AWS,env_auth,region={region}:{path}",
    "gs": ":gcs,bucket_policy_only:{path}",
    "az": ":azureblob,account={account}:{path}",
}
_WEB = {
    "s3": "https://s3.{region}.amazonaws.com/{path}",
    "gs": "https://storage.googleapis.com/{path}",
    "az": "https://{account}.blob.core.windows.net/{path}",
}


def _written(emission: Emission, forms: dict[str, str]) -> tuple[str, str]:
    """Return both buckets in another form; empty where an end is none."""
    found = []
    ends = (emission.src_bucket, emission.sources), (emission.dst_bucket, emission.destinations)
    for bucket, vms in ends:
        kind, _, path = bucket.partition("://")
        account, _, rest = path.partition("/")
        parts = {"account": account, "path": rest if kind == "az" else path}
        found.append(forms.get(kind, "").format(region=vms[0].region.partition(":")[2], **parts))
    return found[0], found[1]


def remotes(emission: Emission) -> tuple[str, str]:
    """Return the buckets as rclone writes them without a configuration, keys in the environment."""
    return _written(emission, _RCLONE)


def is_within(emission: Emission) -> bool:
    """Return whether a store can copy by itself: direct, and inside one provider or account."""
    src, dst = (bucket.split("/") for bucket in (emission.src_bucket, emission.dst_bucket))
    return src[0] == dst[0] != "" and (src[0] != "az:" or src[2] == dst[2]) and not emission.relays


def one_lane(emission: Emission) -> Emission:
    """Return a plan whose whole volume one machine copies, with as many requests at once."""
    connections, gbps = sum(a.connections for a in emission.lanes), emission.plan.throughput_gbps
    first = emission.lanes[0]
    whole = replace(first, share=1.0, connections=connections, throughput_gbps=gbps)
    return replace(emission, lanes=(whole,))


def host_of(emission: Emission) -> str:
    """Return the host that the bucket is read from, for ``NO_PROXY``.

    Raises InputError if what is written goes to the same.
    """
    src, dst = ("".join(url.split("/")[2:3]) for url in _written(emission, _WEB))
    if src == dst:
        raise InputError("emit", "cannot relay: both ends have one host", remedy=_DIRECT, value=src)
    return src


def copy(emission: Emission, tool: str) -> str:
    """Return a script that copies from bucket to bucket with one tool of ``copies.toml``.

    Raises InputError if an end is no bucket that the tool takes, or the plan has relays that it
    would leave out.
    """
    how, plan = copies()["tool"][tool], emission.plan
    if emission.src_bucket[:2] not in how["from"] or emission.dst_bucket[:2] not in how["to"]:
        takes = " to ".join(" or ".join(f"{kind}://" for kind in how[e]) for e in ("from", "to"))
        problem = f"is {tool}, which copies from {takes}, and the plan has other ends"
        raise InputError("emit", problem, remedy="`--emit rclone` copies between any buckets.")
    if "within" in how and emission.relays:
        problem = f"is {tool}, with which the store copies, and this plan has relays"
        raise InputError("emit", problem, remedy=_DIRECT)
    azure = _WEB["az"] if "service" in how else "azure://{account}/{path}"
    known = {"id": plan.plan_id, "vms": str(max(plan.vms.values()))}
    urls = {"s3": "s3://{path}", "gs": "gs://{path}", "az": azure}
    parts = (dict.fromkeys(_WEB, part) for part in ("{path}", "{region}"))
    for name, form in zip(("", "_web", "_path", "_region"), (urls, _WEB, *parts), strict=True):
        known[f"src{name}"], known[f"dst{name}"] = _written(emission, form)
    lines = filled(how["lines"], known)
    note = SERVER_SIDE if "within" in how else "No VM of the plan takes part."
    text = f"started=$(date +%s)\n{lines}{summary(one_lane(emission))}"
    return script(header(emission, f"A copy with {tool}", [note]), text)
