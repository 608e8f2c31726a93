#!/usr/bin/env python3
# The command `pipeweaver` of the Python package: becomes its program without importing it, which would take longer than
# many commands.
import importlib.util
import os
import runpy
import sys

package = importlib.util.find_spec("pipeweaver")
if package is None or package.origin is None:
    sys.exit("pipeweaver: the Python package is not installed here")
runpy.run_path(os.path.join(os.path.dirname(package.origin), "__main__.py"), run_name="__main__")
