#!/usr/bin/env python3
"""Draws predicted against measured step times, as SVG: tools/draw_validate.py OUT.svg TITLE=PREDICTIONS.csv...

A file is what `pipeweaver validate --out` writes. Rows without a prediction or a measured time are left out. Both axes
are logarithmic; the band is 10 % to either side of a perfect prediction.
"""

import csv
import html
import math
import pathlib
import sys

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
    yield f'<polygon points="{points}" fill="#8883" />'
    yield f'<path d="M{axis.x(low)} {axis.y(low)}L{axis.x(high)} {axis.y(high)}" stroke="#888" />'
    for tick in axis.ticks():
        x, y = axis.x(tick), axis.y(tick)
        yield f'<path d="M{x:.1f} {TOP}V{TOP + SIZE}M{LEFT} {y:.1f}H{LEFT + SIZE}" stroke="#8884" />'
        yield f'<text x="{x:.1f}" y="{TOP + SIZE + 18}" text-anchor="middle">{tick:g} s</text>'
        yield f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{tick:g} s</text>'
    yield f'<text x="{LEFT + SIZE / 2}" y="{TOP + SIZE + 40}" text-anchor="middle">measured</text>'
    middle = TOP + SIZE / 2
    yield f'<text transform="translate(14 {middle})rotate(-90)" text-anchor="middle">predicted</text>'


def main():
    out = sys.argv[1]
    series = {}
    for argument in sys.argv[2:]:
        series.update(load(*argument.split("=", 1)))
    axis = Axis([value for points in series.values() for point in points for value in point])
    parts = list(frame(axis))
    for number, (name, points) in enumerate(sorted(series.items(), key=lambda one: -len(one[1]))):
        color, radius = COLORS[number % len(COLORS)], 2 if len(points) > 200 else 3.5
        parts += [f'<circle cx="{axis.x(measured):.1f}" cy="{axis.y(predicted):.1f}" r="{radius}" fill="{color}" '
                  'fill-opacity="0.6" />' for measured, predicted in points]
        parts.append(f'<circle cx="{LEFT + 18}" cy="{TOP + 18 + 20 * number}" r="5" fill="{color}" />')
        parts.append(f'<text x="{LEFT + 30}" y="{TOP + 22 + 20 * number}">'
                     f'{html.escape(name)} ({len(points)} runs)</text>')
    width, height = LEFT + SIZE + 24, TOP + SIZE + BELOW
    style = "text{font:13px sans-serif;fill:#777}"
    pathlib.Path(out).write_text(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
                                 f'width="{width}"><style>{style}</style>{"".join(parts)}</svg>\n')


if __name__ == "__main__":
    main()
