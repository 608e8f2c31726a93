"""Tables in Markdown, and their places in a page: between <!-- NAME --> and <!-- end -->."""

import re
import sys


def table(head, rows, right=()):
    """Lines of a table. `right`: the numbers of the columns that are set to the right."""
    yield line(head)
    yield "|" + "".join("---:|" if at in right else "---|" for at in range(len(head)))
    for row in rows:
        assert len(row) == len(head), row
        yield line(row)


def line(cells):
    return "|" + "".join(f" {cell} |" if cell != "" else " |" for cell in cells)


def fill(page, name, lines):
    """The page with these lines in the place of that name, which must be there once."""
    pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.S)
    if len(pattern.findall(page)) != 1:
        sys.exit(f"<!-- {name} --> ... <!-- end --> must stand once in the page")
    text = "\n".join(lines).rstrip("\n")
    return pattern.sub(lambda found: found[1] + text + "\n" + found[2], page)


def code(lines):
    """Lines of a block of commands."""
    yield from ("```sh", *lines, "```")
