#!/usr/bin/env python3
"""Draws predicted against measured step times, as SVG: studies/draw_validate.py OUT.svg TITLE=PREDICTIONS.csv...

A file is what `pipeweaver validate --out` writes. Rows without a prediction or a measured time are left out. Both axes
are logarithmic; the band is 10 % to either side of a perfect prediction.
"""

import csv
import math
import pathlib
import sys

from svg import circle, document, element, line, text

SIZE, LEFT, TOP, BELOW = 560, 62, 16, 48
COLORS = ("#2e6f9e", "#c0622d", "#55803f", "#8e5ea2", "#b08c00", "#777777")
MEASURED = {"step_time_s": 1, "iteration time (ms)": 1e-3}


def load(title, path):
    """{name: [(measured, predicted), ...]} in seconds: a series for each device, if the file names devices."""
    series = {}
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            column = next(name for name in MEASURED if name in row)
            if row[column] and row["predicted_step_time_s"]:
                name = f"{title}, {row['gpu'].split('-')[0]}" if "gpu" in row else title
                measured = float(row[column]) * MEASURED[column]
                series.setdefault(name, []).append((measured, float(row["predicted_step_time_s"])))
    return series


class Axis:
    """Seconds to pixels, on a logarithmic scale from a power of ten to a power of ten."""

    def __init__(self, values):
        self.low = math.floor(math.log10(min(values)))
        self.high = math.ceil(math.log10(max(values)))

    def share(self, seconds):
        return (math.log10(seconds) - self.low) / (self.high - self.low)

    def x(self, seconds):
        return LEFT + self.share(seconds) * SIZE

    def y(self, seconds):
        return TOP + (1 - self.share(seconds)) * SIZE

    def ticks(self):
        return [10.0 ** power for power in range(self.low, self.high + 1)]


def frame(axis):
    low, high = axis.ticks()[0], axis.ticks()[-1]
    band = [(low, low * 1.1), (high / 1.1, high), (high, high), (high, high / 1.1), (low * 1.1, low), (low, low)]
    points = " ".join(f"{axis.x(measured):.1f},{axis.y(predicted):.1f}" for measured, predicted in band)
    yield element("polygon", points=points, fill="#8883")
    yield line(("M", axis.x(low), axis.y(low), "L", axis.x(high), axis.y(high)), "#888")
    for tick in axis.ticks():
        x, y = axis.x(tick), axis.y(tick)
        yield line(("M", x, TOP, "V", TOP + SIZE, "M", LEFT, y, "H", LEFT + SIZE), "#8884")
        yield text(x, TOP + SIZE + 18, f"{tick:g} s", "middle")
        yield text(LEFT - 8, y + 4, f"{tick:g} s", "end")
    yield text(LEFT + SIZE / 2, TOP + SIZE + 40, "measured", "middle")
    yield element("text", "predicted", transform=f"translate(14 {TOP + SIZE / 2:g})rotate(-90)", text_anchor="middle")


def main():
    out = sys.argv[1]
    series = {}
    for argument in sys.argv[2:]:
        series.update(load(*argument.split("=", 1)))
    axis = Axis([value for points in series.values() for point in points for value in point])
    parts = list(frame(axis))
    for number, (name, points) in enumerate(sorted(series.items(), key=lambda one: -len(one[1]))):
        color, radius = COLORS[number % len(COLORS)], 2 if len(points) > 200 else 3.5
        parts += [circle(axis.x(measured), axis.y(predicted), radius, color, fill_opacity=0.6)
                  for measured, predicted in points]
        parts.append(circle(LEFT + 18, TOP + 18 + 20 * number, 5, color))
        parts.append(text(LEFT + 30, TOP + 22 + 20 * number, f"{name} ({len(points)} runs)"))
    pathlib.Path(out).write_text(document(LEFT + SIZE + 24, TOP + SIZE + BELOW, parts))


if __name__ == "__main__":
    main()
