"""python -m pipeweaver.data CONFIG [--batch FILE]: prints the coefficients of a model on a machine, as JSON."""

from __future__ import annotations

import argparse
import json
import sys

from ..errors import PipeweaverError


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m pipeweaver.data", description=__doc__)
    parser.add_argument("config", help="a configuration file of `pipeweaver plan`: model, cluster, tp, pp, dp, ...")
    parser.add_argument("--batch", help="a batch file, in place of the configuration's batch or data set")
    options = parser.parse_args()
    try:
        from .. import _core
        from .fit import coefficients

        config = json.loads(_core.read_document(options.config))
        print(json.dumps(coefficients(config, options.batch).to_dict(), indent=1))
    except PipeweaverError as error:
        print(f"pipeweaver: {error}", file=sys.stderr)
        return error.exit_status
    return 0


if __name__ == "__main__":
    sys.exit(main())
