"""Self-contained HTML pages from templates next to the modules that fill them."""

from __future__ import annotations

import json
from html import escape
from importlib import resources
from pathlib import Path
from string import Template

from polyabayes._support.files import replacing


def json_of_page(content: object) -> str:
    """JSON for a script element: no text in it can begin or end an element or a comment."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def write_page(path: Path, room: str, template: str, title: str, **content: object) -> Path:
    """Fill a template of a package; `content` is HTML or JSON, the title is escaped here."""
    page = Template(resources.files(room).joinpath(template).read_text("utf-8"))
    with replacing(path) as stream:
        stream.write(page.substitute(content, title=escape(title)).encode(errors="replace"))
    return path
