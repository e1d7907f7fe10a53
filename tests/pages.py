"""What pages of Markdown hold: blocks of code by language, and the commands among them."""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]


class Block(NamedTuple):
    """A fenced block and the line that it begins on, from 0."""

    source: str
    line: int


def blocks(page: Path, language: str) -> list[Block]:
    text = page.read_text("utf-8")
    pattern = rf"^```{language}\n(.*?)^```"
    found = list(re.finditer(pattern, text, flags=re.DOTALL | re.MULTILINE))
    assert len(found) == text.count(f"```{language}\n"), f"{page}: a block is indented, or open"
    return [Block(match[1], text.count("\n", 0, match.start(1))) for match in found]


def commands(page: Path) -> list[list[str]]:
    """Return the words of every command in the shell blocks, without comments."""
    text = "".join(block.source for block in blocks(page, "sh"))
    lines = text.replace("\\\n", " ").splitlines()
    return [words for line in lines if (words := line.partition("#")[0].split())]
