"""Copies between object stores by fsspec, price and time first (the extra ``relayd[fsspec]``)."""

from relayd.fs.copying import CopyForecast, CopyResult, copy, forecast

__all__ = ["CopyForecast", "CopyResult", "copy", "forecast"]
