"""Stores, and the commands that work on them."""

import os
import shlex
from pathlib import Path

import pandas as pd

from cere import command
from cere.frames import frame


class Store:
    """A directory in which CERE keeps builds, profiles, codelets and records: `.cere` where the build ran.

    `cere` is the file of the command; by default the environment variable CERE, else the one in PATH.
    """

    def __init__(self, path=".cere", cere=None):
        """Name the store in the directory `path`. It need not exist."""
        self.path = Path(path).absolute()
        self.cere = cere

    def __repr__(self):
        """Return the call that makes it."""
        return f"Store({os.fspath(self.path)!r})"

    def run(self, name, *what, **options):
        """Run any command of CERE on the store and return its JSON, as `docs/schemas` describes it.

        `store.run("profile", program=["./app", "input"])` is `cere profile -- ./app input`. Options: see `command.run`.
        """
        return command.run(name, *what, cere=self.cere, store=self.path, **options)

    def profile(self, table="regions"):
        """Return the last profile: by default the first thread's regions. `attrs` has run time, coverage and the rest.

        `table` may be another list of `cere profile`: `over_threads`, `threads`, `over_ranks`, `ranks`, `tree`.
        """
        return frame(self.run("profile", show=True), table)

    def regions(self, *patterns):
        """Return the regions of the current build."""
        return frame(self.run("regions", *patterns))

    def codelets(self):
        """Return the codelets."""
        return frame(self.run("codelets"))

    def records(self, *regions):
        """Return the records of replays, the newest last. Flags are quoted as a shell splits them."""
        records = frame(self.run("results", *regions))
        if not records.empty:
            records["setting.flags"] = records["setting.flags"].map(shlex.join)
            records["when"] = pd.to_datetime(records["when"], utc=True)
        return records


def opened(store):
    """Return `store`, or the store in that directory."""
    return store if isinstance(store, Store) else Store(store)


def replay(what, store=".cere", **options):
    """Replay codelets, one row each: time and verdict. `what`: a codelet, region, pattern or `.codelet` file.

    Options are those of `cere replay`: `replay("solve@*", flags="-O3 -march=native", reps=50)`.
    """
    return frame(opened(store).run("replay", what, **options))


def try_edit(*what, store=".cere", **options):
    """Run edited sources on captured data, one row a region and variant. Without `what`: all codelets.

    A verdict such as `different` is an answer and no error. Options are those of `cere try`:
    `try_edit(patch="idea.diff")`, `try_edit(source=["a/solver.c", "b/solver.c"])`.
    """
    return frame(opened(store).run("try", *what, **options))


def tune(*regions, store=".cere", **options):
    """Search flags for each region, one row each. `attrs` has what the search cost.

    Options are those of `cere tune`: `tune("solve@*", budget="60s")`.
    """
    return frame(opened(store).run("tune", *regions, **options), "regions")


def compare(a, b, *regions, store=".cere", **options):
    """Run two codes in turns, one row a region. Sides and options are those of `cere compare`.

    `compare("captured", "flags:-O3")`, `compare("git:HEAD~1", "sources", "solve@*")`.
    """
    return frame(opened(store).run("compare", a, b, *regions, **options))
