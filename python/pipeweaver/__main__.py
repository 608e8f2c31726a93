"""python -m pipeweaver: becomes the program that lies in the package."""

import os
import sys


def main() -> None:
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "pipeweaver")
    try:
        os.execv(program, ["pipeweaver", *sys.argv[1:]])
    except OSError as error:
        print(f"pipeweaver: {program}: {error.strerror}; allowed is a package that pip installed", file=sys.stderr)
        sys.exit(3)


if __name__ == "__main__":
    main()
