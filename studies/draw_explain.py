#!/usr/bin/env python3
"""Draws docs/pictures/explain.svg, the speed of a product along n with what `costdb explain` says is lost most:
studies/draw_explain.py PIPEWEAVER
"""

import json
import pathlib
import subprocess
import sys

from svg import across, circle, curve, document, legend, text

PICTURE = pathlib.Path(__file__).resolve().parents[1] / "docs/pictures/explain.svg"
DEVICE, M, K = "a100_sxm", 3584, 1024
SIZES = range(512, 4097, 64)
COLORS = {"wave": "#c0622d", "alignment": "#8e6bb0", "kernel": "#b8902c", "launch": "#4f6d7a", "memory": "#55803f"}
LEFT, TOP, WIDE, HIGH, MOST = 60, 30, 620, 260, 300


def explained(program, n):
    """The product with so many columns."""
    command = [program, "costdb", "explain", "--device", DEVICE, "--m", M, "--n", n, "--k", K, "--json"]
    done = subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True)
    product, = json.loads(done.stdout)["products"]
    return product


def worst(losses):
    """The loss that is largest."""
    return max(losses, key=losses.get)


def parts(products):
    for tflops in range(0, MOST + 1, 50):
        yield from across(LEFT, TOP + HIGH * (1 - tflops / MOST), WIDE, tflops)
    places = [(LEFT + WIDE * (p["n"] - SIZES[0]) / (SIZES[-1] - SIZES[0]), TOP + HIGH * (1 - p["tflops_per_s"] / MOST))
              for p in products]
    yield curve(places, "#8888", width=1)
    for (x, y), product in zip(places, products):
        yield circle(x, y, 4, COLORS[worst(product["losses"])])
    for n in range(512, 4097, 512):
        yield text(LEFT + WIDE * (n - SIZES[0]) / (SIZES[-1] - SIZES[0]), TOP + HIGH + 18, n, "middle")
    yield text(LEFT, TOP - 12, f"TFLOP/s of m {M}, k {K} on {DEVICE}, along n; the largest loss:")
    drawn = {worst(product["losses"]) for product in products}
    yield from legend(LEFT + 10, TOP + HIGH + 30, [(color, name) for name, color in COLORS.items() if name in drawn])


def main():
    PICTURE.write_text(document(LEFT + WIDE + 30, TOP + HIGH + 54, parts([explained(sys.argv[1], n) for n in SIZES])))


if __name__ == "__main__":
    main()
