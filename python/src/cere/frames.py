"""JSON of the command as data frames."""

import pandas as pd


def frame(value, table=None):
    """Return the list `value`, or the list `value[table]`, as a data frame with one row an entry.

    Fields of fields have names with a dot (`cycles.mean`). An interval becomes two columns, `interval_low` and
    `interval_high`. The other fields of `value` are in the frame's `attrs`.
    """
    rest = {}
    if table is not None:
        rest = {name: other for name, other in value.items() if name != table}
        value = value[table]
    rows = pd.json_normalize(value if isinstance(value, list) else [value])
    for column in list(rows.columns):
        if column.rsplit(".", 1)[-1] == "interval":
            _split(rows, column)
        elif rows[column].isna().all() and any(other.startswith(column + ".") for other in rows.columns):
            # null in the place of an object: its fields say that already.
            del rows[column]
    rows.attrs = rest
    return rows


def _split(rows, column):
    ends = [pair if isinstance(pair, list) else [None, None] for pair in rows[column]]
    at = rows.columns.get_loc(column)
    del rows[column]
    for number, end in enumerate(("low", "high")):
        values = pd.array([pair[number] for pair in ends], dtype="float64")
        rows.insert(at + number, f"{column}_{end}", values)
