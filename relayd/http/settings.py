"""Settings of the service: options, else ``RELAYD_SERVE_*``, else ``[serve]`` of the TOML file."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from math import inf
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

from pydantic import TypeAdapter, ValidationError

from planner.model.errors import InputError
from planner.model.units import parse_duration_s
from relayd.store.location import is_loopback
from relayd.store.samples.ingest import LIMITS
from relayd.store.tokens import Token
from relayd.watch.settings import LEAST_INTERVAL_S, MOST_INTERVAL_S, QuietHours, WatchOptions
from relayd.watch.webhook import Webhook

_HOST_NAME = re.compile(r"[A-Za-z0-9_.-]+")
PREFIX = "RELAYD_SERVE_"
TABLE = "serve"
_WATCH = WatchOptions(0.0)  # its defaults are those of the service


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """Settings of the service, with the range of each number; times in seconds, sizes in MB."""

    host: str = "127.0.0.1"
    port: Annotated[int, (0, 65_535)] = 8080  # 0 takes a free port
    behind_proxy: str = ""
    """Name at which a proxy with TLS passes requests on; allows a public address without TLS."""
    insecure_public: bool = False  # listen on a public address without TLS all the same
    tls_cert: Path | None = None
    tls_key: Path | None = None
    """PEM files."""
    no_auth: bool = False  # answer everyone on this machine, without tokens
    workers: Annotated[int, (0, 256)] = 0  # processes that answer questions; 0 for one a core
    cache_mb: Annotated[float, (0, 1e6)] = 64.0  # memory for plans that were answered before
    answer_limit_s: Annotated[float, (0.1, 3600)] = 30.0  # longest time for one answer
    body_mb: Annotated[float, (0.001, 1000)] = 1.0  # largest body, samples aside
    samples_mb: Annotated[float, (0.001, 10_000)] = 32.0  # largest body of samples
    max_regions: Annotated[int, (2, 10_000)] = LIMITS.regions
    max_setups: Annotated[int, (1, 1e6)] = LIMITS.setups
    """Most regions, and combinations of tool, zones and VM types, that samples may bring."""
    max_series: Annotated[int, (0, 1e9)] = LIMITS.series
    """Most series (metrics of links, over each kind of address) that one token, or address
    without one, may report; 0 for no limit."""
    read_timeout_s: Annotated[float, (0.1, 3600)] = 15.0  # longest time to send a request's body
    stream_timeout_s: Annotated[float, (0.1, 86_400)] = 60.0
    """Longest time to send a stream of samples."""
    idle_timeout_s: Annotated[float, (1, 86_400)] = 75.0  # longest time until a request begins
    shutdown_s: Annotated[float, (0, 3600)] = 20.0
    """Longest time for requests in flight to finish after SIGTERM."""
    max_connections: Annotated[int, (1, 1e6)] = 10_000
    """Most open connections, or what the system's limit of open files allows if that is less;
    beyond it those without a request are closed, the longest idle first."""
    requests_per_s: Annotated[float, (0, 1e9)] = 0.0  # of one token or address; 0 for no limit
    burst: Annotated[float, (1, 1e9)] = 200.0
    allowed_hosts: tuple[str, ...] = ()
    """Names of the service other than ``host``, ``behind_proxy``, addresses and localhost:
    requests for others are refused."""
    cors_origins: tuple[str, ...] = ()  # pages of these origins may ask from a browser
    snapshot_max_age_s: Annotated[float, (0, 1e10)] = 0.0
    """/readyz says no when the newest snapshot is older; 0 for no limit."""
    refresh_s: Annotated[float, (0.05, 3600)] = 2.0
    """Interval between polls for new snapshots, tokens and events."""
    snapshot_every_s: Annotated[float, (0, 1e9)] = 60.0
    """New samples become a new snapshot at most this often; 0 leaves that to others."""
    metrics_links: Annotated[int, (0, 1_000_000)] = 5000
    """Most links with gauges of their own in /metrics, up to ten each; 0 for none."""
    access_log: bool = True  # whether to log each request
    fleet: Path | None = None  # the fleet file of campaigns, and of what is watched
    watch_daily_budget_usd: Annotated[float, (0, 1e9)] = 0.0
    """Most egress that watching the fleet may take in a UTC day; 0 watches nothing."""
    watch_interval_s: Annotated[float, (LEAST_INTERVAL_S, MOST_INTERVAL_S)] = _WATCH.interval_s
    """Within which to notice an outage."""
    watch_campaign_every_s: Annotated[float, (0, 1e10)] = _WATCH.campaign_every_s
    """Age at which a campaign is due; 0 for none but after changes."""
    watch_regret: Annotated[float, (0, 0.999)] = 0.0
    """Expected regret to keep the fleet below, day by day; 0 to measure by age alone."""
    watch_quiet_hours: str = ""  # UTC hours without throughput probes, such as ``22:00-06:00``
    watch_webhook: str = ""
    """Address to notify of links that fail and recover, signed with ``RELAYD_WEBHOOK_SECRET``."""
    watch_retain_s: Annotated[float, (0, 1e10)] = _WATCH.retain_s
    """Age at which samples are summarised; 0 for never."""

    def problems(self) -> list[InputError]:
        """List the problems of the settings, the gravest first."""
        return list(_problems(self))

    def tokens_problem(self, tokens: Collection[Token]) -> InputError | None:
        """Find what forbids a start with the tokens that the store ever had."""
        if tokens or not self.is_public:
            return None
        problem = "is a public address and the store has no token"
        remedy = "Make one: `relayd serve token create NAME --scope admin`, with the same --db."
        return InputError("host", problem, value=self.host, remedy=remedy)

    @property
    def is_public(self) -> bool:
        """Whether others than this machine can reach it."""
        return not is_loopback(self.host)

    def as_toml(self) -> str:
        """Return the effective settings as a TOML table."""
        lines = [f"[{TABLE}]"]
        for name, value in asdict(self).items():
            # TOML writes lists, text, numbers and flags as JSON does.
            text = json.dumps(value, default=str, ensure_ascii=False)
            lines.append(f"# {name} is not set" if value is None else f"{name} = {text}")
        return "\n".join(lines)


def load_service_settings(
    options: Mapping[str, Any], environment: Mapping[str, str] = os.environ
) -> ServiceSettings:
    """Return the effective settings of options that were given, the environment, and the file.

    ``config`` among the options names the TOML file.

    Raises InputError if a value can't be read or there is no such setting. Values that can be read
    but not used are returned by :meth:`ServiceSettings.problems`.
    """
    kinds = get_type_hints(ServiceSettings)
    given: list[tuple[str, Any, str, Path]] = []  # name, value, where it is from, folder
    if config := options.get("config") or environment.get(f"{PREFIX}CONFIG"):
        path = Path(config)
        table = _table(path)
        given += [(name, table[name], f"{path}: {TABLE}.{name}", path.parent) for name in table]
    for name in kinds:
        variable = f"{PREFIX}{name.upper()}"
        given.append((name, environment.get(variable) or None, variable, Path()))
        given.append((name, options.get(name), f"--{name.replace('_', '-')}", Path()))
    found: dict[str, Any] = {}
    for name, value, field, folder in given:
        if name not in kinds:
            remedy = f"Settings are {', '.join(kinds)}."
            raise InputError(field, "is not a setting", remedy=remedy)
        if value is not None:
            found[name] = _value(value, kinds[name], field, folder)
    return ServiceSettings(**found)


def _table(path: Path) -> Mapping[str, Any]:
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8")).get(TABLE, {})
    except OSError as error:
        raise InputError("--config", f"can't be read ({error.strerror})", value=str(path)) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(str(path), f"is not valid TOML: {error}") from None
    if not isinstance(table, dict):
        raise InputError(f"{path}: {TABLE}", "must be a table", value=table)
    return table


def _value(given: Any, kind: Any, field: str, folder: Path) -> Any:
    """Return a value of the kind that a setting has, from TOML or from text."""
    if kind == tuple[str, ...] and isinstance(given, str):
        given = tuple(item.strip() for item in given.split(",") if item.strip())
    if kind is str and isinstance(given, int | float):
        given = str(given)
    if kind is float and isinstance(given, str) and field.lower().endswith(("_s", "-s")):
        with suppress(ValueError):
            return float(given)
        return parse_duration_s(given, field)
    try:
        found = TypeAdapter(kind).validate_python(given)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]["msg"].removeprefix("Input ")
        raise InputError(field, problem, value=given) from None
    return folder / found if isinstance(found, Path) else found


def _openings(settings: ServiceSettings) -> Iterator[InputError]:
    """Yield what would let strangers in."""
    is_safe = settings.tls_cert or settings.behind_proxy or settings.insecure_public
    if settings.is_public and not is_safe:
        problem = "is a public address and there is no TLS"
        remedy = (
            "Give --tls-cert and --tls-key; listen on 127.0.0.1; or give --behind-proxy "
            "NAME if only a proxy with TLS reaches this address."
        )
        yield InputError("host", problem, value=settings.host, remedy=remedy)
    if settings.no_auth and (settings.is_public or settings.behind_proxy):
        problem = "is for loopback alone, and others than this machine can reach the service"
        remedy = "Leave it out, or listen on 127.0.0.1 without a proxy."
        yield InputError(
            "no_auth", problem, value=settings.behind_proxy or settings.host, remedy=remedy
        )
    for name in filter(None, (settings.behind_proxy, *settings.allowed_hosts)):
        if not _HOST_NAME.fullmatch(name):
            yield InputError(
                "behind_proxy" if name == settings.behind_proxy else "allowed_hosts",
                "must be names such as relayd.example",
                value=name,
                remedy="Name each one, without scheme and port; `*` would let any page in that "
                "rebinds its own name to this address.",
            )
    for origin in settings.cors_origins:
        if origin == "*" or "://" not in origin or origin.count("/") != 2:
            problem = "must be origins such as https://dashboard.example"
            remedy = "Name each page's origin; `*` would let any page ask."
            yield InputError("cors_origins", problem, value=origin, remedy=remedy)


def _problems(settings: ServiceSettings) -> Iterator[InputError]:
    yield from _openings(settings)
    if bool(settings.tls_cert) != bool(settings.tls_key):
        yield InputError("tls_cert and tls_key", "go together, and one of them is missing")
    for name in ("tls_cert", "tls_key", "fleet"):
        path = getattr(settings, name)
        if path is not None and not os.access(path, os.R_OK):
            yield InputError(name, "is not a file that can be read", value=str(path))
    if settings.watch_daily_budget_usd:
        if not settings.fleet:
            yield InputError(
                "watch_daily_budget_usd",
                "needs a fleet to watch",
                value=settings.watch_daily_budget_usd,
                remedy="Name a fleet file by `fleet`.",
            )
        try:
            watch_options(settings)
        except InputError as error:
            yield error
    for name, kind in get_type_hints(ServiceSettings, include_extras=True).items():
        for least, most in (one for one in get_args(kind) if isinstance(one, tuple)):
            if not least <= (value := getattr(settings, name)) <= most:
                yield InputError(name, f"must be from {least:g} to {most:g}", value=value)


def watch_options(settings: ServiceSettings) -> WatchOptions:
    """Return the settings of the watcher, or raise an InputError that names a wrong one."""
    webhook = None
    if settings.watch_webhook:
        webhook = Webhook.from_environment(settings.watch_webhook, "watch_webhook")
    quiet = settings.watch_quiet_hours
    return WatchOptions(
        settings.watch_daily_budget_usd,
        interval_s=settings.watch_interval_s,
        campaign_every_s=settings.watch_campaign_every_s or inf,
        regret=settings.watch_regret or None,
        retain_s=settings.watch_retain_s or inf,
        quiet=QuietHours.parse(quiet, "watch_quiet_hours") if quiet else None,
        webhook=webhook,
    )
