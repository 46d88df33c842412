"""SkyPilot: an admin policy that keeps tasks where their data costs least, fees and time together.

A task says what it reads, and where that lies, in its environment variable :data:`VARIABLE`;
SkyPilot then chooses by price of VMs among the regions that the policy leaves.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from contextlib import closing
from difflib import get_close_matches
from functools import cache, partial
from typing import Any

import sky
from sky import global_user_state
from sky.server.requests.request_names import AdminPolicyRequestName

from planner.fields.kinds import Money, Volume
from planner.fields.shared import DEFAULT_TIME_VALUE_USD_PER_H
from planner.model.errors import DataError, InputError, UnknownRegionError
from planner.model.units import S_PER_H
from relayd.client.blocking import RemoteWan
from relayd.sources.opening import open as open_wan
from relayd.sources.wan import Wan

VARIABLE = "RELAYD_READS"
"""Of a task: ``aws:us-east-1=500GB, gcp:us-central1=20GB``."""
SLACK_VARIABLE = "RELAYD_SLACK_USD"
"""Of a task: how much more than in the best region its data may cost."""
DEFAULT_SLACK_USD = 1.0

CLOUDS = {"aws": "AWS", "azure": "Azure", "gcp": "GCP"}
"""Providers, as SkyPilot calls them; regions have the same names."""


class DataGravity(sky.AdminPolicy):
    """Leaves tasks the regions in which their data costs little more than in the best one.

    Of the task's alternatives on other clouds than AWS, Azure and Google's, none is left. Register
    it in SkyPilot's configuration: ``admin_policy: relayd.integrations.skypilot.DataGravity``.
    Tasks without :data:`VARIABLE`, and those for a cluster that there is already, stay as they
    are. ``RELAYD_DB`` says what it rests on, such as the address of a service.
    """

    @classmethod
    def validate_and_mutate(cls, user_request: Any) -> Any:
        """Return the request with the task's resources in fewer regions.

        Raises InputError if a variable is wrong, or no region that the task allows is known.
        """
        task = user_request.task
        text = task.envs.get(VARIABLE)
        if text and not _has_cluster(user_request):
            slack = task.envs.get(SLACK_VARIABLE, str(DEFAULT_SLACK_USD))
            slack_usd = Money().validate(slack, SLACK_VARIABLE)
            with closing(open_wan(os.environ.get("RELAYD_DB"))) as wan:
                costs_usd = data_costs_usd(wan, read_volumes_gb(text))
            task.set_resources(_nearest(task.resources, costs_usd, slack_usd))
        return sky.MutatedUserRequest(task, user_request.skypilot_config)


def _has_cluster(user_request: Any) -> bool:
    """Say whether a task is for a cluster that exists already and has its region."""
    if user_request.request_name == AdminPolicyRequestName.CLUSTER_EXEC:
        return True
    options = user_request.request_options  # None for jobs and services
    name = options.cluster_name if options else None
    return name is not None and bool(global_user_state.cluster_with_name_exists(name))


def read_volumes_gb(text: str) -> dict[str, float]:
    """Return GB by region of what a task says that it reads.

    Raises InputError if it is not written as :data:`VARIABLE` says.
    """
    found: dict[str, float] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        region, equals, volume = map(str.strip, part.partition("="))
        if not equals or not region:
            remedy = "Write it such as aws:us-east-1=500GB, gcp:us-central1=20GB."
            raise InputError(VARIABLE, "must say a volume by region", value=part, remedy=remedy)
        found[region] = found.get(region, 0.0) + Volume().validate(volume, f"{VARIABLE} {region}")
    return found


def data_costs_usd(wan: Wan | RemoteWan, reads_gb: Mapping[str, float]) -> dict[str, float]:
    """Return, by region, what it costs to read there, with one VM, what lies in others.

    Egress fees from each region that has data, and the longest of the transfers at the usual value
    of an hour (20 USD). What lies in the region itself is free.

    Raises UnknownRegionError if data lies in none that is known.

    Parameters
    ----------
    reads_gb : mapping
        By region's id.

    Returns
    -------
    dict
        Without regions that nothing is known of.
    """
    regions = [region.id for region in wan.regions()]
    for region in reads_gb:
        if region not in regions:
            raise UnknownRegionError(VARIABLE, region, get_close_matches(region, regions))
    found = {}
    for region in regions:
        egress_usd = longest_s = 0.0
        try:
            for src, volume_gb in reads_gb.items():
                if src != region:
                    plan = wan.plan(src, region, volume_gb=volume_gb, relays="none", vms=1)
                    egress_usd += plan.cost_usd.egress
                    longest_s = max(longest_s, plan.duration_s)
        except DataError:
            continue
        found[region] = egress_usd + longest_s / S_PER_H * DEFAULT_TIME_VALUE_USD_PER_H
    return found


def _nearest(resources: Any, costs_usd: Mapping[str, float], slack_usd: float) -> Any:
    """Return resources as SkyPilot has them, a set or in order, in the regions that cost least."""
    refused = cache(lambda provider: _refused(provider, costs_usd))
    choices: list[tuple[float, Any]] = []
    for one in resources:
        for region, cost_usd in costs_usd.items():
            provider, _, name = region.partition(":")
            cloud = CLOUDS.get(provider)
            if cloud is None or (one.cloud is not None and str(one.cloud) != cloud):
                continue
            if one.region in (None, name) and region not in refused(provider):
                copy = partial(one.copy, cloud=getattr(sky.clouds, cloud)(), region=name)
                choices.append((cost_usd, copy))
    if not choices:
        problem = "allow no region of which it is known what reading there costs"
        remedy = f"Name other regions, or leave {VARIABLE} out."
        raise InputError(
            "resources", problem, value=[str(one.infra) for one in resources], remedy=remedy
        )
    most_usd = min(cost_usd for cost_usd, _ in choices) + slack_usd
    found = [copy() for cost_usd, copy in choices if cost_usd <= most_usd]
    return found if isinstance(resources, list) else set(found)


def _refused(provider: str, regions: Iterable[str]) -> Collection[str]:
    """Return the regions of a provider that SkyPilot has no prices of: it refuses their tasks.

    None of them where it has no catalogue and can't fetch it now.
    """
    cloud = getattr(sky.clouds, CLOUDS[provider])()
    found = set()
    for region in regions:
        of, _, name = region.partition(":")
        if of == provider:
            try:
                cloud.validate_region_zone(name, None)
            except ValueError:
                found.add(region)
            except OSError:  # as those of requests are
                return ()
    return found
