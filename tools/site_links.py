"""A hook of mkdocs.yml: links of docs/ to files outside of it lead into the repository, or are text without one."""

import pathlib
import posixpath
import re


def on_page_markdown(markdown, page, config, files):
    """The page with its links to files outside of docs/ replaced."""
    folder = posixpath.dirname(page.file.src_uri)

    def replaced(match):
        text, target = match.groups()
        if re.match(r"[a-z]+:|#", target):
            return match[0]
        place = posixpath.normpath(posixpath.join("docs", folder, target.partition("#")[0]))
        if place.startswith("docs/"):
            return match[0]
        kind = "blob" if pathlib.PurePosixPath(place).suffix else "tree"
        return f"[{text}]({config.repo_url}/{kind}/main/{place})" if config.repo_url else text

    return re.sub(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)", replaced, markdown)
