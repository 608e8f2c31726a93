"""SVG as the pictures of the studies are written: text, an element at a time, and a document around it."""

import html


def number(value):
    """At most two digits behind the point."""
    return value if isinstance(value, (int, str)) else f"{value:.2f}".rstrip("0").rstrip(".")


def element(name, body=None, **attributes):
    """Of an attribute's name `_` is written `-`; what is None is left out."""
    words = "".join(f' {key.replace("_", "-")}="{number(value)}"'
                    for key, value in attributes.items() if value is not None)
    return f"<{name}{words} />" if body is None else f"<{name}{words}>{body}</{name}>"


def text(x, y, words, anchor=None, color=None, style=None, **more):
    """`anchor`: middle or end of the words is at x. A color is a style, since the document has one for all words."""
    styles = ";".join(filter(None, (f"fill:{color}" if color else None, style)))
    return element("text", html.escape(str(words), quote=False), x=x, y=y, text_anchor=anchor, style=styles or None,
                   **more)


def rect(x, y, width, height, fill, title=None, **more):
    body = None if title is None else element("title", html.escape(title))
    return element("rect", body, x=x, y=y, width=width, height=height, fill=fill, **more)


def circle(x, y, radius, fill, **more):
    return element("circle", cx=x, cy=y, r=radius, fill=fill, **more)


def line(commands, stroke, **more):
    """Along the commands of a path: words, or numbers."""
    return element("path", d=path(commands), fill="none", stroke=stroke, **more)


def area(commands, fill, **more):
    return element("path", d=path(commands), fill=fill, **more)


def path(commands):
    """("M", 1.5, 2, "h", 3) as "M1.5 2h3"."""
    words = ""
    for command in commands:
        separated = not isinstance(command, str) and not words[-1:].isalpha()
        words += (" " if separated else "") + str(number(command))
    return words


def curve(points, color, width=2, **more):
    """Straight from point to point."""
    commands = [word for x, y in points for word in ("L", x, y)]
    return line(["M", *commands[1:]], color, stroke_width=width, **more)


def across(left, y, width, label, stroke="#8884"):
    """A line of a grid, with what it stands for at its left."""
    yield line(("M", left, y, "h", width), stroke)
    yield text(left - 8, y + 4, label, "end")


def legend(x, y, entries):
    """Boxes of a color with a name each, side by side."""
    for fill, name in entries:
        yield rect(x, y, 14, 14, fill)
        yield text(x + 19, y + 12, name)
        x += 34 + 7.4 * len(name)


def document(width, height, parts):
    """A picture with grey words of 13 pixels, on light and on dark pages."""
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {number(width)} {number(height)}" '
            f'width="{number(width)}"><style>text{{font:13px sans-serif;fill:#777}}</style>{"".join(parts)}</svg>\n')
