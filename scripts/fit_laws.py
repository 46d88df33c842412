"""Prints the spreads of links about laws: ``python -m scripts.fit_laws``.

They are those of :mod:`planner.model.throughput`, as logarithms, for each class of distance. How
often they hold in regions that were left out of the fit: ``python -m scripts.calibration_study``.
Needs the shared measurements (tests/shared_data.py).
"""

from __future__ import annotations

from tests.probes.estimation.cross_validation import fitted_laws


def main() -> None:
    """Print a row a law."""
    for ((src, dst), address), law in fitted_laws().items():
        below, above = (", ".join(map("{:.2f}".format, of)) for of in (law.below, law.above))
        print(f"{src} > {dst}, {address}: below ({below}), above ({above})")


if __name__ == "__main__":
    main()
