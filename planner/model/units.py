"""Units: every conversion, and every quantity as people write and read it.

Throughput is in Gbit/s (10^9 bit/s) in plans and Mbit/s in measurements, volume in GB
(10^9 bytes), money in USD, time in seconds, round-trip time in milliseconds. Names carry
the unit as a suffix, so that no conversion hides in an expression.
"""

from __future__ import annotations

import math
import re
from math import ceil

from planner.model.errors import InputError

BITS_PER_BYTE = 8
MBPS_PER_GBPS = 1000.0
MS_PER_S = 1000.0
S_PER_H = 3600.0
S_PER_DAY = 86400.0
BITS_PER_MBIT = 1e6
BYTES_PER_GB = 1e9
GB_PER_GIB = 1.073741824

_DIGITS = r"\d{1,3}(?:,\d{3})+(?:\.\d*)?|\d[\d_]*\.?\d*|\.\d+"  # 2,000.5 or 2_000.5
_QUANTITY = rf"(?i)\s*([+-]?(?:{_DIGITS})(?:e[+-]?\d+)?)\s*([a-z/%$]*)\s*"

_VOLUME_GB = {
    "b": 1e-9,
    "kb": 1e-6,
    "mb": 1e-3,
    "gb": 1.0,
    "tb": 1e3,
    "pb": 1e6,
    "kib": 1024e-9,
    "mib": 1024**2 * 1e-9,
    "gib": GB_PER_GIB,
    "tib": GB_PER_GIB * 1024,
    "pib": GB_PER_GIB * 1024**2,
    # As `du` and `dd` write them.
    "k": 1e-6,
    "m": 1e-3,
    "g": 1.0,
    "t": 1e3,
    "p": 1e6,
}
# In 500Gb the small b means bits, and who writes it may mean bytes. In 500gb nothing says so.
_BITS = r"([KMGTP]i?)b|([kmgtpKMGTP]i?)bits?"
# A byte alone is written out: site_b is no volume.
_WORDS = "kilo|mega|giga|tera|peta|kibi|mebi|gibi|tebi|pebi"
_OF_HEADS = rf"(?i)(?:({_WORDS})?bytes?|(?:^|[^a-z])([kmgtp]i?b))\W*$"
_RATE_GBPS = {
    "bps": 1e-9,
    "kbps": 1e-6,
    "mbps": 1e-3,
    "gbps": 1.0,
    "tbps": 1e3,
    "kbit/s": 1e-6,
    "mbit/s": 1e-3,
    "gbit/s": 1.0,
    "tbit/s": 1e3,
}
_DURATION_S = {
    "ms": 1e-3,
    "s": 1.0,
    "sec": 1.0,
    "m": 60.0,
    "min": 60.0,
    "h": S_PER_H,
    "hour": S_PER_H,
    "hours": S_PER_H,
    "d": S_PER_DAY,
    "day": S_PER_DAY,
    "days": S_PER_DAY,
}
_MONEY_USD = {"usd": 1.0, "$": 1.0, "": 1.0}
_TIME_VALUE_USD_PER_H = {"usd/h": 1.0, "usdh": 1.0, "$/h": 1.0, "usd": 1.0, "": 1.0}


def parse_volume_gb(text: str, field: str = "volume") -> float:
    """Read a volume such as ``500GB``, ``500G``, ``1.5TB`` or ``200GiB``; returns GB.

    Without a number and a unit of volume, or with one of bits (``500Gb``), it is an InputError.
    """
    found = _parts(text)
    if found and (bits := re.fullmatch(_BITS, found[1])):
        number, prefix = found[0], (bits[1] or bits[2]).upper().replace("I", "i")
        in_bytes = f"{float(number) / BITS_PER_BYTE:g}{prefix}B"
        remedy = f"Write {number}{prefix}B for bytes, or {in_bytes} if bits were meant."
        raise InputError(field, "is in bits", value=text, remedy=remedy)
    return _parse(text, field, _VOLUME_GB, "500GB, 1.5TB or 200GiB")


def volume_unit_in(head: str) -> str:
    """Return the unit of volume that a column's head ends with (``data [TiB]``), else ``""``."""
    word, unit = found.groups("") if (found := re.search(_OF_HEADS, head)) else ("", " ")
    return (unit or f"{word[:1]}{'i' * word.lower().endswith('bi')}B").strip()


def parse_rate_gbps(text: str, field: str = "throughput") -> float:
    """Read a rate such as ``8gbps`` or ``200Mbit/s``; returns Gbit/s."""
    return _parse(text, field, _RATE_GBPS, "8gbps or 200mbps")


def parse_duration_s(text: str, field: str = "duration") -> float:
    """Read a duration such as ``90s``, ``30min`` or ``2h``; returns seconds."""
    return _parse(text, field, _DURATION_S, "90s, 30min or 2h")


def parse_money_usd(text: str, field: str = "budget") -> float:
    """Read an amount such as ``20usd``, ``$20`` or ``20``; returns USD."""
    stripped = text.strip()
    return _parse(stripped.removeprefix("$"), field, _MONEY_USD, "20usd")


def parse_time_value_usd_per_h(text: str, field: str = "time_value") -> float:
    """Read what an hour is worth, such as ``20usd/h`` or ``inf``; returns USD per hour."""
    if text.strip().lower() in {"inf", "infinity"}:
        return math.inf
    return _parse(text, field, _TIME_VALUE_USD_PER_H, "20usd/h, 0 or inf")


def duration_s(volume_gb: float, throughput_gbps: float) -> float:
    """Seconds that a volume takes at a steady rate: ``8 D / R``."""
    return BITS_PER_BYTE * volume_gb / throughput_gbps


def moved_gb(rate_mbps: float, seconds: float) -> float:
    """Return the volume that a rate moves in a time."""
    return rate_mbps / MBPS_PER_GBPS * seconds / BITS_PER_BYTE


def gbps_text(rate_gbps: float) -> str:
    """Return a rate for a sentence: two decimals, or three figures where it is small."""
    return f"{rate_gbps:.2f}" if rate_gbps >= 1 else f"{rate_gbps:.3g}"


def rate_text(*rates_gbps: float) -> str:
    """Return a rate, or the ends of a range, with a fitting unit."""
    unit, scale = ("Gbit/s", 1.0) if max(rates_gbps) >= 0.1 else ("Mbit/s", MBPS_PER_GBPS)
    return f"{' to '.join(gbps_text(rate * scale) for rate in rates_gbps)} {unit}"


def chance_text(probability: float) -> str:
    """Return a probability in percent, never rounded to none or to all."""
    if not 0.01 <= probability <= 0.99:
        return "under 1%" if probability < 0.5 else "over 99%"
    return f"{probability:.0%}"


def more_usd_text(usd: float) -> str:
    """Say a difference in cost as a clause."""
    if abs(usd) < 0.005:
        return "at the same cost"
    return f"and costs {usd_text(usd)} more" if usd > 0 else f"and saves {usd_text(-usd)}"


def duration_text(seconds: float) -> str:
    """Return a duration as people say it: ``48 s``, ``13 min 24 s``, ``2 h 05 min``."""
    if not math.isfinite(seconds):
        return "forever"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    minutes = round(seconds / 60)
    if minutes < 48 * 60:
        return f"{minutes // 60} h {minutes % 60:02d} min"
    return f"{seconds / S_PER_DAY:.1f} days"


def too_short_texts(deadline_s: float, needed_s: float) -> tuple[str, str]:
    """Return a deadline and what is needed for one sentence: in seconds where words hide which."""
    texts = duration_text(deadline_s), duration_text(needed_s)
    return texts if texts[0] != texts[1] else (f"{deadline_s:g} s", f"{needed_s:g} s")


def enough(needed_s: float) -> tuple[str, int]:
    """Return a duration to allow, rounded up to what words can say, in words and in seconds."""
    step_s = 1 if needed_s < S_PER_H else 60 if needed_s < 2 * S_PER_DAY else 8640
    enough_s = ceil(needed_s / step_s) * step_s
    return f"{duration_text(enough_s)} ({enough_s} s)", enough_s


def start_texts(vm_start_s: float) -> tuple[str, str]:
    """Return the time until VMs have started, and the remedy, to end sentences; empty if none."""
    if not vm_start_s:
        return "", ""
    starting = f", {duration_text(vm_start_s)} of it until VMs have started"
    return starting, ", or start the VMs before and say so (`vms_running`)"


def volume_text(volume_gb: float) -> str:
    """Return a volume in a fitting unit."""
    for unit, size in (("PB", 1e6), ("TB", 1e3), ("GB", 1.0), ("MB", 1e-3)):
        if volume_gb >= size:
            return f"{volume_gb / size:.4g} {unit}"
    return f"{volume_gb * 1e6:.4g} kB"


def usd_text(amount: float) -> str:
    """Return an amount of dollars such as ``$1,234.50``; small ones with more digits."""
    digits = 4 if amount and abs(amount) < 0.01 else 2
    return f"{'-' if amount < 0 else ''}${abs(amount):,.{digits}f}"


def _parts(text: str) -> tuple[str, str] | None:
    """Return the number and the unit of a quantity; None if it is none."""
    match = re.fullmatch(_QUANTITY, text)
    return (re.sub("[,_]", "", match[1]), match[2]) if match else None


def _parse(text: str, field: str, units: dict[str, float], examples: str) -> float:
    found = _parts(text)
    if found is None:
        problem, remedy = "is not a quantity with a unit", f"Write {examples}."
        raise InputError(field, problem, value=text, remedy=remedy)
    number, written = found
    unit = written.lower()
    if unit not in units:
        known = ", ".join(name for name in units if name)
        problem = "has no unit" if not unit else f"has an unknown unit {written!r}"
        raise InputError(field, problem, value=text, remedy=f"Write {examples}; units are {known}.")
    value = float(number) * units[unit]
    if not math.isfinite(value):
        raise InputError(field, "is not a finite quantity", value=text)
    return value
