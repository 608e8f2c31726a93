"""Where the checkout is whose tests these are."""

import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[3]
