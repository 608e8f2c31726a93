"""Figures in prose of docs/ and README.md, and where each comes from.

A figure is a number with a unit outside of blocks, tables and `code`. It stands in a block or a table of its page, one
of few digits with its unit, or a comment behind its paragraph says where it is from, in entries that ";" separates:

    <!-- figures: 3.8 % = 100 * (2.777 / 2.675 - 1) -->           from numbers of the page's blocks and tables
    <!-- figures: 77 s, 1.1 GB in studies/gains.md -->            these numbers stand in that file
    <!-- figures: 2.05 times in emulator/x.cpp: backward -->      on a line of it with these words
    <!-- figures: 22.8 s by pipeweaver emulate ... -->            the command prints it, give or take the last digit
    <!-- figures: 1.4 s once at 57b3c91: the command above -->   measured by hand; the commit wrote it down
    <!-- figures: 80 GiB said: an H100's memory -->             a limit, a default, an example, a source's figure
"""

import ast
import dataclasses
import operator
import re

from checkout import ROOT

UNIT = r"(?:x\b|\s?%|\s?(?:s|ms|us|min|[KMG]iB|[MGT]B|USD|days|times)\b)"
ONE = r"(?:\d[\d,]*\.\d+|\d[\d,]*\d|\d)"
FIGURE = re.compile(rf"({ONE})({UNIT})")
FIGURES = re.compile(rf"(?<![\w.])(?<!\w,)((?:[-+]?{ONE}(?:,|,? and| to| or)\s)*[-+]?{ONE})({UNIT})")  # "2, 3 and 5 s"
NUMBER = re.compile(ONE)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
ORIGINS = re.compile(r"<!-- figures: (.*?)-->", re.DOTALL)
BLOCK = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)
ORIGIN = (r"= (?P<sum>[^:]+?)(?: of (?P<of>\S+))?", r"in (?P<file>[^\s:]+)(?:: (?P<words>.+))?",
          r"by (?P<printed>pipeweaver .+)", r"once at (?P<commit>[0-9a-f]{7,40}): .+", r"said: .+")
ENTRY = re.compile(rf"(?P<figures>[^:=]+?) (?:{'|'.join(ORIGIN)})")
SUMS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
        ast.Pow: operator.pow}
FREE = {str(count) for count in [*range(1, 21), 100, 1000, 1024]}  # operands that need no origin: counts, units


@dataclasses.dataclass
class Paragraph:
    """Lines without an empty one, a block or a table between them."""

    line: int
    figures: list
    entries: list


def numbers(text):
    return {number.replace(",", "") for number in NUMBER.findall(text)}


def of_table(line):
    return line.lstrip().startswith("|")


def shown(text):
    """A page's blocks and tables."""
    return "\n".join([*(match[0] for match in BLOCK.finditer(text)), *filter(of_table, text.splitlines())])


def stands_in(figure, text):
    """Whether the text has the figure, or its number where that is long enough to be no accident."""
    number = NUMBER.match(figure)[0]
    if "." in number and len(number) > 3:
        return number_of(figure) in numbers(text)
    unit = re.escape(figure[len(number):].strip())
    return re.search(rf"(?<![\d.,]){re.escape(number)}\s?{unit}(?!\w)", text) is not None


def paragraphs(text):
    """Of a page: the figures of its prose, without code and links' targets, and the entries of its comments."""
    rest = BLOCK.sub(lambda match: "\n" * match[0].count("\n"), text)
    rest = "\n".join("" if of_table(line) else line for line in rest.split("\n"))
    for match in re.finditer(r"(?:^.*\S.*\n?)+", rest, re.MULTILINE):
        prose = re.sub(r"`[^`]*`|\]\([^)]*\)", "", COMMENT.sub("", match[0]))
        entries = [entry for origins in ORIGINS.findall(match[0]) for entry in " ".join(origins.split()).split("; ")]
        figures = [number + unit.replace("\n", " ") for several, unit in FIGURES.findall(prose)
                   for number in NUMBER.findall(several)]
        yield Paragraph(rest.count("\n", 0, match.start()) + 1, figures, entries)


def value(node, text, known):
    """Of an expression, whose operands stand in what is known."""
    if isinstance(node, ast.Constant):
        number = ast.get_source_segment(text, node)
        if number not in known and number not in FREE:
            raise ValueError(f"{number} stands nowhere")
        return float(number)
    if not isinstance(node, ast.BinOp):
        raise ValueError("no sum of numbers")
    return SUMS[type(node.op)](value(node.left, text, known), value(node.right, text, known))


def number_of(figure):
    return NUMBER.match(figure)[0].replace(",", "")


def is_sum(figure, text, known):
    """Whether the expression, rounded as the figure is, is the figure."""
    text = re.sub(r"(?<=\d),(?=\d)", "", text).strip()
    number = number_of(figure)
    exact = value(ast.parse(text, mode="eval").body, text, known)
    return abs(float(number) - exact) <= 0.5 * 10.0 ** -len(number.partition(".")[2]) + 1e-9


def wrong(entry, page):
    """Figures that the entry gives an origin, and what is wrong with it or None. `page`: its blocks and tables."""
    found = ENTRY.fullmatch(entry)
    if not found:
        return [], "is no entry: FIGURE = SUM, in FILE, once at COMMIT: COMMAND, or said: WHAT"
    figures = [figure.strip() for figure in re.split(r",\s+", found["figures"])]
    odd = [figure for figure in figures if not FIGURE.fullmatch(figure)]
    if odd:
        return figures, f"{odd[0]} is no figure with a unit"
    file = found["of"] or found["file"]
    if file and not (ROOT / file).is_file():
        return figures, f"there is no file {file}"
    text = (ROOT / file).read_text() if file else ""
    if found["sum"]:
        try:
            return figures, None if is_sum(figures[0], found["sum"], numbers(text if file else page)) else "is another"
        except (SyntaxError, ValueError) as error:
            return figures, str(error)
    if found["file"]:
        lines = [line for line in text.splitlines() if (found["words"] or "") in line]
        absent = [figure for figure in figures if number_of(figure) not in numbers("\n".join(lines))]
        return figures, f"{absent[0]} does not stand there" if absent else None
    return figures, None


def printed(text):
    """(figure, command) of each figure of a page that a command prints."""
    entries = [ENTRY.fullmatch(entry) for paragraph in paragraphs(text) for entry in paragraph.entries]
    return [(figure.strip(), found["printed"]) for found in entries if found and found["printed"]
            for figure in found["figures"].split(", ")]


def commits(text):
    """Those that figures of a page were measured at."""
    entries = [ENTRY.fullmatch(entry) for paragraph in paragraphs(text) for entry in paragraph.entries]
    return {found["commit"] for found in entries if found and found["commit"]}


def is_printed(figure, output):
    """Whether a number of the output, rounded as the figure is, is the figure."""
    number = number_of(figure)
    half = 0.5 * 10.0 ** -len(number.partition(".")[2]) + 1e-9
    return any(abs(float(one) - float(number)) <= half for one in numbers(output) if "." in one)


def complaints(text):
    """Of a page: figures without origin, entries that are wrong, entries without figure."""
    page, said = shown(text), []
    for paragraph in paragraphs(text):
        have = set()
        for entry in paragraph.entries:
            figures, complaint = wrong(entry, page)
            have.update(figures)
            unused = [figure for figure in figures if figure not in paragraph.figures]
            complaint = complaint or (f"no {unused[0]} in the paragraph" if unused else None)
            said += [f"{paragraph.line}: {entry}: {complaint}"] if complaint else []
        said += [f"{paragraph.line}: {figure}: no block or table has it, and no comment says where it is from"
                 for figure in paragraph.figures if figure not in have and not stands_in(figure, page)]
    return said
