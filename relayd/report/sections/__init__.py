"""The sections of a report: one question each."""

from __future__ import annotations

from relayd.report.document import Analysis
from relayd.report.sections import paths, speed

SECTIONS = {
    one.key: one
    for questions in (speed, paths)
    for one in vars(questions).values()
    if isinstance(one, Analysis)
}
"""In the order in which they are asked."""
