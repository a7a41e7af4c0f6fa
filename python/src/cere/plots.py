"""Plots for notebooks. Those of data frames need matplotlib (`pip install cere[plot]`)."""

import tempfile
from pathlib import Path

import pandas as pd

from cere.frames import frame
from cere.store import opened

GOOD = ("exact", "tolerance", "partly")


class Picture:
    """A picture as SVG, which notebooks show. `points` has its points as a data frame."""

    def __init__(self, svg, points):
        """Keep the text of the picture and its points."""
        self.svg = svg
        self.points = points

    def _repr_svg_(self):
        return self.svg


def roofline(*what, store=".cere", **options):
    """Put codelets on the roof of the machine: the picture that `cere roofline --svg` draws.

    Options are those of `cere roofline`; without `machine=FILE` it needs what `cere machine` measured here.
    """
    with tempfile.TemporaryDirectory() as directory:
        svg = Path(directory, "roofline.svg")
        points = frame(opened(store).run("roofline", *what, svg=svg, **options), "points")
        return Picture(svg.read_text(encoding="utf-8"), points)


def _axes(ax, rows):
    if ax is None:
        # Here, since all but the plots works without it.
        from matplotlib import pyplot

        _, ax = pyplot.subplots(figsize=(8, 1 + 0.4 * max(rows, 1)), layout="constrained")
    return ax


def plot_profile(profile, ax=None, count=15):
    """Draw the first `count` rows of `Store.profile`, which are the regions with most time. Returns the axes."""
    shown = profile.head(count)[::-1]
    ax = _axes(ax, len(shown))
    bars = ax.barh(shown["name"], shown["self_seconds"])
    if "share" in shown:
        ax.bar_label(bars, [f"{share:.1%}" for share in shown["share"]], padding=3)
        ax.margins(x=0.15)
    ax.set_xlabel("self time in s")
    return ax


def plot_try(tried, ax=None):
    """Draw what `try_edit` returned: time over that as captured, with its interval. Returns the axes.

    An edit without a time stands at 1 as a cross, with its verdict.
    """
    ax = _axes(ax, len(tried))
    labels = [f"{row.name}\n{row.variant}" if row.variant else row.name for row in tried.itertuples(index=False)]
    for at, row in enumerate(tried.itertuples(index=False)):
        if pd.isna(row.ratio):
            ax.plot(1, at, "x", color="tab:red")
            ax.annotate(row.verdict, (1, at), xytext=(8, 0), textcoords="offset points", va="center")
            continue
        color = "tab:blue" if row.verdict in GOOD else "tab:red"
        ax.plot(row.ratio, at, "o", color=color)
        if not pd.isna(row.interval_low):
            ax.hlines(at, row.interval_low, row.interval_high, color=color)
    # Room for verdicts.
    ax.margins(x=0.25)
    ax.axvline(1, color="0.7", zorder=0)
    ax.set_yticks(range(len(labels)), labels)
    ax.set_ylim(len(labels) - 0.5, -0.5)
    ax.set_xlabel("time over that as captured")
    return ax
