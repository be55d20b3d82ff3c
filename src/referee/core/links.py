"""Where the symbolic links of a tree lead, told from their texts alone: nothing on a disk is followed."""

from __future__ import annotations

from collections.abc import Container


def stays(links: Container[str], folder: str, text: str) -> bool:
    """Whether a link in the directory ``folder`` of a tree, with the text ``text``, leads into that tree.

    The texts of links that climb are counted from their own directory, which has to be a real one. A text that goes
    through another link and then up again counts as leading out: where it comes out is not told by its words. So
    when all links of a tree stay, no path through any number of them leaves it.

    Args:
        links: where all the links of the tree stand, as paths relative to it.
        folder: the directory of the link, relative to the tree; empty for the tree itself.
        text: what the link says.
    """
    if text.startswith("/"):
        return False
    here, through = folder, False
    for part in text.split("/"):
        if part in {"", "."}:
            continue
        if part == "..":
            if through or not here:
                return False
            here = here.rpartition("/")[0]
        else:
            here = f"{here}/{part}" if here else part
            through = through or here in links
    return True
