"""Kinds of settings whose breach is not quoted: what stands there may be the credential itself."""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
#: Some keys have no other characters than names of variables have: long, without a break, letters and digits mixed.
_KEY = re.compile(r"(?=[A-Za-z0-9]*[a-z])(?=[A-Za-z0-9]*[0-9])[A-Za-z0-9]{20,}|AIza[A-Za-z0-9_]{20,}", re.ASCII)


def _variable(name: str) -> str:
    if name and (not _VARIABLE.fullmatch(name) or _KEY.fullmatch(name)):
        raise PydanticCustomError(
            "no_variable", "no name of a variable; write the NAME of the variable that holds the key, not the key"
        )
    return name


def _address(address: str) -> str:
    try:
        parts = urlsplit(address)
        sound = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        sound = sound and address.isprintable() and " " not in address
        bare = parts.username is None and parts.password is None and not parts.query and not parts.fragment
    except ValueError:
        sound = bare = False
    if not sound or not bare:
        raise PydanticCustomError(
            "no_address", "no address of a server; write https://HOST/v1 or http://HOST:PORT/v1, and no more than that"
        )
    return address


def _address_or_none(address: str) -> str:
    return _address(address) if address else address


#: The name of a variable of the environment; empty where none is named.
VariableName = Annotated[str, AfterValidator(_variable)]
#: ``http://`` or ``https://``, a host, and what else an address needs: no credential, query or fragment.
ServerAddress = Annotated[str, AfterValidator(_address)]
#: The same; empty where none is given.
OptionalAddress = Annotated[str, AfterValidator(_address_or_none)]
