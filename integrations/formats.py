"""Reads what `cere profile --export` wrote, file by file in this directory, as the tools do that the formats are for.

Called by scripts/integrations-test; the argument is speedscope's schema.
"""

import csv
import json
import re
import sys
from pathlib import Path

import hatchet
import jsonschema
from prometheus_client.parser import text_string_to_metric_families

REGION = "step@waves.c:7"


def near(one, other):
    """Whether two numbers differ by no more than rounding."""
    return abs(one - other) <= 1e-4 * max(abs(one), abs(other)) + 1e-6


families = {family.name: family.samples for family in text_string_to_metric_families(Path("prometheus").read_text())}
seconds = families["cere_run_seconds"][0].value
of_region = [s.value for s in families["cere_region_self_seconds"] if s.labels["region"] == REGION]
assert len(of_region) == 1 and 0 < of_region[0] <= seconds, families

speedscope = json.loads(Path("speedscope").read_text())
jsonschema.validate(speedscope, json.loads(Path(sys.argv[1]).read_text()))
names = [frame["name"] for frame in speedscope["shared"]["frames"]]
assert REGION in names, names

tree = hatchet.GraphFrame.from_literal(json.loads(Path("hatchet").read_text()))
frame = tree.dataframe
assert near(frame.loc[frame["name"] == REGION, "time"].sum(), of_region[0]), frame
assert "waves" in tree.tree()

folded = [re.fullmatch(r"(.+) (\d+)", line).groups() for line in Path("folded").read_text().splitlines()]
assert near(sum(int(count) for stack, count in folded if stack.endswith(REGION)) / 1e6, of_region[0]), folded

# As stackcollapse-perf.pl reads it: a heading, frames with address, name and image, an empty line.
samples = Path("perf").read_text().strip().split("\n\n")
for sample in samples:
    heading, *frames = sample.split("\n")
    assert re.fullmatch(r"\S+\s+\d+/\d+\s+\[\d+\]\s+[\d.]+:\s+\d+ \S+:", heading), heading
    assert frames and all(re.fullmatch(r"\s*[0-9a-f]+ .+ \(\S+\)", line) for line in frames), frames
of_samples = sum(f" {REGION} (" in sample for sample in samples) / len(samples)
share = sum(int(count) for stack, count in folded if stack.endswith(REGION)) / sum(int(count) for _, count in folded)
assert abs(of_samples - share) < 0.01, (of_samples, share)

trace = json.loads(Path("chrome").read_text())
spans = [event for event in trace["traceEvents"] if event["ph"] == "X"]
assert spans and all(event["dur"] >= 0 and isinstance(event["name"], str) for event in spans)
assert all(one["ts"] <= other["ts"] for one, other in zip(spans, spans[1:]))

rows = list(csv.DictReader(open("series", newline="")))
assert len(rows) == len(spans), (len(rows), len(spans))
# Invocations are without the time off the processor.
waiting = [s.value for s in families["cere_region_waiting_seconds"] if s.labels["region"] == REGION]
work = sum(float(row["seconds"]) for row in rows if row["region"] == REGION)
assert abs(work - (of_region[0] - waiting[0])) < 0.02 * of_region[0] + 1e-6, (work, of_region, waiting)
