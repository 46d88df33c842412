"""Settings of the service: options, else ``RELAYD_SERVE_*``, else ``[serve]`` of the TOML file."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, replace
from math import inf
from pathlib import Path
from typing import Any, get_type_hints

from pydantic import TypeAdapter, ValidationError

from planner.model.errors import InputError
from planner.model.units import parse_duration_s
from relayd.extras import is_installed
from relayd.store.location import is_loopback
from relayd.store.samples.ingest import LIMITS
from relayd.store.tokens import Token
from relayd.watch.settings import LEAST_INTERVAL_S, MOST_INTERVAL_S, QuietHours, WatchOptions
from relayd.watch.webhook import Webhook

_HOST_NAME = re.compile(r"[A-Za-z0-9_.-]+")
PREFIX = "RELAYD_SERVE_"
TABLE = "serve"
_OTLP_PACKAGES = ("opentelemetry.sdk", "opentelemetry.exporter")
_WATCH = WatchOptions(0.0)  # its defaults are those of the service
_RANGES: dict[str, tuple[float, float]] = {
    "port": (0, 65_535),
    "workers": (0, 256),
    "cache_mb": (0, 1e6),
    "answer_limit_s": (0.1, 3600),
    "body_mb": (0.001, 1000),
    "samples_mb": (0.001, 10_000),
    "batch_items": (1, 100_000),
    "max_regions": (2, 10_000),
    "max_setups": (1, 1e6),
    "max_series": (0, 1e9),
    "read_timeout_s": (0.1, 3600),
    "stream_timeout_s": (0.1, 86_400),
    "idle_timeout_s": (1, 86_400),
    "shutdown_s": (0, 3600),
    "max_connections": (1, 1e6),
    "requests_per_s": (0, 1e9),
    "burst": (1, 1e9),
    "snapshot_max_age_s": (0, 1e10),
    "refresh_s": (0.05, 3600),
    "snapshot_every_s": (0, 1e9),
    "metrics_links": (0, 1_000_000),
    "watch_daily_budget_usd": (0, 1e9),
    "watch_interval_s": (LEAST_INTERVAL_S, MOST_INTERVAL_S),
    "watch_campaign_every_s": (0, 1e10),
    "watch_regret": (0, 0.999),
    "watch_retain_s": (0, 1e10),
}


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """How the service runs; times in seconds, sizes in bytes.

    Attributes
    ----------
    host, port
        Address to listen at; loopback by default. Port 0 takes a free port.
    behind_proxy : str
        Name at which a proxy with TLS passes requests on; allows a public address without TLS.
    insecure_public : bool
        Listen on a public address without TLS all the same.
    tls_cert, tls_key : Path | None
        PEM files.
    no_auth : bool
        Answer everybody on this machine, without tokens.
    workers : int
        Processes for batches, shuffles and other long questions; 0 for one a core.
    cache_mb : float
        Memory for plans that were answered before.
    answer_limit_s : float
        Longest time for one answer.
    body_mb : float
        Largest body, samples aside.
    samples_mb : float
        Largest body of samples.
    batch_items : int
        Most plans in a batch.
    max_regions, max_setups : int
        Most regions, and most combinations of tool, zones and VM types, that samples sent to the
        service may bring the store to.
    max_series : int
        Most series (metrics of links, over each kind of address) that one token, or address
        without one, may report; 0 for no limit.
    read_timeout_s, idle_timeout_s : float
        Longest time to send a request's body; and until a request begins.
    stream_timeout_s : float
        Longest time to send a stream of samples.
    shutdown_s : float
        How long requests in flight may take to finish after SIGTERM.
    max_connections : int
        Most open connections, or what the system's limit of open files allows if that is less;
        beyond it those without a request are closed, the longest idle first.
    requests_per_s, burst : float
        Of one token or address; 0 for no limit.
    allowed_hosts : tuple of str
        Names of the service beside ``host``, ``behind_proxy``, addresses and localhost: requests
        for others are refused.
    cors_origins : tuple of str
        Pages of these origins may ask from a browser.
    snapshot_max_age_s : float
        /readyz says no when the newest snapshot is older; 0 for no limit.
    refresh_s : float
        Interval between polls for new snapshots, tokens and events.
    snapshot_every_s : float
        New samples become a new snapshot at most this often; 0 leaves that to others.
    metrics_links : int
        Most links with gauges of their own in /metrics, up to ten each; 0 for none.
    otlp_endpoint : str
        Base address of a collector of OpenTelemetry, for traces and metrics; needs the extra otel.
    access_log : bool
        Whether to log each request.
    fleet : Path | None
        The fleet file of campaigns, and of what is watched.
    watch_daily_budget_usd : float
        Most egress that watching the fleet may take in a UTC day; 0 watches nothing.
    watch_interval_s : float
        Within which to notice an outage.
    watch_campaign_every_s : float
        Age at which a campaign is due; 0 for none but after changes.
    watch_regret : float
        Expected regret to keep the fleet below, day by day; 0 to measure by age alone.
    watch_quiet_hours : str
        UTC hours without throughput probes, such as ``22:00-06:00``.
    watch_webhook : str
        Address to notify of links that fail and recover, signed with ``RELAYD_WEBHOOK_SECRET``.
    watch_retain_s : float
        Age at which samples are summarised; 0 for never.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    behind_proxy: str = ""
    insecure_public: bool = False
    tls_cert: Path | None = None
    tls_key: Path | None = None
    no_auth: bool = False
    workers: int = 0
    cache_mb: float = 64.0
    answer_limit_s: float = 30.0
    body_mb: float = 1.0
    samples_mb: float = 32.0
    batch_items: int = 1000
    max_regions: int = LIMITS.regions
    max_setups: int = LIMITS.setups
    max_series: int = LIMITS.series
    read_timeout_s: float = 15.0
    stream_timeout_s: float = 60.0
    idle_timeout_s: float = 75.0
    shutdown_s: float = 20.0
    max_connections: int = 10_000
    requests_per_s: float = 0.0
    burst: float = 200.0
    allowed_hosts: tuple[str, ...] = ()
    cors_origins: tuple[str, ...] = ()
    snapshot_max_age_s: float = 0.0
    refresh_s: float = 2.0
    snapshot_every_s: float = 60.0
    metrics_links: int = 5000
    otlp_endpoint: str = ""
    access_log: bool = True
    fleet: Path | None = None
    watch_daily_budget_usd: float = 0.0
    watch_interval_s: float = _WATCH.interval_s
    watch_campaign_every_s: float = _WATCH.campaign_every_s
    watch_regret: float = 0.0
    watch_quiet_hours: str = ""
    watch_webhook: str = ""
    watch_retain_s: float = _WATCH.retain_s

    def problems(self) -> list[InputError]:
        """Return all that is wrong with the settings, the gravest first."""
        return list(_problems(self))

    def tokens_problem(self, tokens: Collection[Token]) -> InputError | None:
        """Return why the service must not start with the tokens that its store ever had."""
        if tokens or not self.is_public:
            return None
        return InputError(
            "host",
            "is a public address and the store has no token",
            value=self.host,
            remedy="Make one first: `relayd token create NAME --scope admin`, with the same --db.",
        )

    @property
    def host_names(self) -> tuple[str, ...]:
        """Names by which the service may be asked, beside addresses and localhost."""
        return tuple(filter(None, (self.host, self.behind_proxy, *self.allowed_hosts)))

    @property
    def is_public(self) -> bool:
        """Whether others than this machine can reach it."""
        return not is_loopback(self.host)

    def as_toml(self) -> str:
        """Return the effective settings as a TOML table."""
        lines = [f"[{TABLE}]"]
        for field in fields(self):
            value = getattr(self, field.name)
            lines.append(
                f"# {field.name} is not set" if value is None else f"{field.name} = {_toml(value)}"
            )
        return "\n".join(lines)


def load_service_settings(
    options: Mapping[str, Any], environment: Mapping[str, str] = os.environ
) -> ServiceSettings:
    """Return the effective settings.

    Parameters
    ----------
    options : mapping
        From the command line, those that were given; ``config`` names the TOML file.
    environment : mapping

    Raises
    ------
    InputError
        If a value can't be read or there is no such setting. Values that can be read but not
        used are returned by :meth:`ServiceSettings.problems`.
    """
    kinds = get_type_hints(ServiceSettings)
    found: dict[str, Any] = {}
    config = options.get("config") or environment.get(f"{PREFIX}CONFIG")
    if config:
        path = Path(config)
        table = _table(path)
        for name, value in table.items():
            field = f"{path}: {TABLE}.{name}"
            if name not in kinds:
                raise InputError(
                    field, "is not a setting", remedy=f"Settings are {', '.join(kinds)}."
                )
            found[name] = _value(value, kinds[name], field, path.parent)
    for name, kind in kinds.items():
        variable = f"{PREFIX}{name.upper()}"
        if (text := environment.get(variable)) not in (None, ""):
            found[name] = _value(text, kind, variable, Path())
        if (given := options.get(name)) is not None:
            found[name] = _value(given, kind, f"--{name.replace('_', '-')}", Path())
    return replace(ServiceSettings(), **found)


def _table(path: Path) -> Mapping[str, Any]:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError("--config", f"can't be read ({error.strerror})", value=str(path)) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(str(path), f"is not valid TOML: {error}") from None
    table = content.get(TABLE, {})
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
        return _seconds(given, field)
    try:
        found = TypeAdapter(kind).validate_python(given)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]["msg"].removeprefix("Input ")
        raise InputError(field, problem, value=given) from None
    return folder / found if isinstance(found, Path) else found


def _seconds(given: str, field: str) -> float:
    try:
        return float(given)
    except ValueError:
        return parse_duration_s(given, field)


def _problems(settings: ServiceSettings) -> Any:
    if settings.is_public and not (
        settings.tls_cert or settings.behind_proxy or settings.insecure_public
    ):
        yield InputError(
            "host",
            "is a public address and there is no TLS",
            value=settings.host,
            remedy="Give --tls-cert and --tls-key; listen on 127.0.0.1; or give --behind-proxy "
            "NAME if only a proxy with TLS reaches this address.",
        )
    if settings.no_auth and (settings.is_public or settings.behind_proxy):
        yield InputError(
            "no_auth",
            "is for loopback alone, and others than this machine can reach the service",
            value=settings.behind_proxy or settings.host,
            remedy="Leave it out, or listen on 127.0.0.1 without a proxy.",
        )
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
    if settings.otlp_endpoint:
        if not re.fullmatch(r"https?://[^/?#@]+(/[^?#]*)?", settings.otlp_endpoint):
            yield InputError(
                "otlp_endpoint",
                "must be the base address of a collector, such as http://127.0.0.1:4318",
                value=settings.otlp_endpoint,
                remedy="Credentials belong into OTEL_EXPORTER_OTLP_HEADERS.",
            )
        if not all(map(is_installed, _OTLP_PACKAGES)):
            yield InputError(
                "otlp_endpoint",
                "needs OpenTelemetry's SDK",
                value=settings.otlp_endpoint,
                remedy="Install it with `pip install 'relayd[otel]'`.",
            )
    for name, (least, most) in _RANGES.items():
        value = getattr(settings, name)
        if not least <= value <= most:
            yield InputError(name, f"must be from {least:g} to {most:g}", value=value)
    for field, name in (
        *(("behind_proxy", name) for name in (settings.behind_proxy,) if name),
        *(("allowed_hosts", name) for name in settings.allowed_hosts),
    ):
        if not _HOST_NAME.fullmatch(name):
            yield InputError(
                field,
                "must be names such as relayd.example",
                value=name,
                remedy="Name each one, without scheme and port; `*` would let any page in that "
                "rebinds its own name to this address.",
            )
    for origin in settings.cors_origins:
        if origin == "*" or "://" not in origin or origin.count("/") != 2:
            yield InputError(
                "cors_origins",
                "must be origins such as https://dashboard.example",
                value=origin,
                remedy="Name each page's origin; `*` would let any page ask.",
            )


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    if isinstance(value, int | float):
        return repr(value)
    text = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def watch_options(settings: ServiceSettings) -> WatchOptions:
    """Return the settings of the watcher.

    Raises
    ------
    InputError
        Naming the setting that is wrong.
    """
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
