"""CERE in Python: what the command `cere` prints with `--json`, as data frames.

A store is `Store(path)`. `replay`, `try_edit`, `tune` and `compare` measure; `plot_profile`, `plot_try` and `roofline`
draw; `run` runs any other command. What the command refuses raises `Error` with the command's own message.
"""

from cere.command import Error, run
from cere.plots import Picture, plot_profile, plot_try, roofline
from cere.store import Store, compare, replay, try_edit, tune

__all__ = [
    "Error",
    "Picture",
    "Store",
    "compare",
    "plot_profile",
    "plot_try",
    "replay",
    "roofline",
    "run",
    "try_edit",
    "tune",
]
