"""The bundle that draws charts: Vega, Vega-Lite and Vega-Embed, as vl-convert carries them."""

from __future__ import annotations

from functools import cache

from relayd.dashboard.assets import MEDIA_TYPES, Asset, asset

# Pages import it as a module; Vega-Embed brings the interpreter that needs no `eval`.
_SNIPPET = "globalThis.relaydCharts = { vegaEmbed, vegaLite, vega };"


@cache
def bundle() -> Asset | None:
    """Return the bundle, or None without the extra ``report``; takes a second or two."""
    try:
        import vl_convert
    except ImportError:
        return None
    return asset(vl_convert.javascript_bundle(_SNIPPET).encode(), MEDIA_TYPES[".js"])
