"""Copies between object stores by fsspec, price and time first (the extra ``relayd[fsspec]``)."""

from relayd.fs.copying import CopyResult, copy, forecast
from relayd.fs.forecasting import CopyForecast

__all__ = ["CopyForecast", "CopyResult", "copy", "forecast"]
