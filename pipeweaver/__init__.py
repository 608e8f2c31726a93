"""The package of this checkout, so that `python3 -m pipeweaver.data.convert` runs at its top without a build.

The package itself is python/pipeweaver. One that is installed goes before it: that has the compiled part.
"""

import importlib.util
import pathlib
import sys
from importlib.machinery import PathFinder

top = pathlib.Path(__file__).resolve().parents[1]
others = [path for path in sys.path if pathlib.Path(path).resolve() != top]
spec = PathFinder.find_spec(__name__, [*others, str(top / "python")])
package = importlib.util.module_from_spec(spec)
sys.modules[__name__] = package
spec.loader.exec_module(package)
