"""What of a credential is secret, and what of it stands in many others too."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from referee.core.event_strings import strings

#: Parts of a value that is itself a JSON document count as credentials from this length on.
_OF_DOCUMENT = 16

#: A JSON web token: head, claims, signature. The head and how the claims begin are no secret.
_TOKEN = re.compile(r"eyJ[\w-]+\.([\w-]+)\.([\w-]+)")
_PUBLIC_CLAIMS = 24


def secret_parts(value: str) -> list[str]:
    """What of a value is secret: the most, it all. The head of a token is the same in many others."""
    token = _TOKEN.fullmatch(value)
    if token is not None:
        found = [part for part in (token[1][_PUBLIC_CLAIMS:], token[2]) if len(part) >= _OF_DOCUMENT]
        return found or [value]
    return list(_parts(value)) or [value]


def _parts(value: str) -> Iterator[str]:
    """The long strings of a value that is a JSON document, as key files of services are; addresses are public."""
    if not value.startswith("{"):
        return
    try:
        document = json.loads(value)
    except (ValueError, RecursionError):
        return
    for _path, _holder, _key, text in strings(document):
        if len(text) >= _OF_DOCUMENT and "://" not in text and "@" not in text:
            yield text
