"""Calls to a broker's own interface: JSON over HTTP, with a credential that no message repeats."""

from __future__ import annotations

import http.client
import json
import re
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from referee.core.redaction import SHORTEST, Redactor
from referee.tls import tls_context

#: An answer is read up to that many bytes.
_MOST = 8 * 1024**2

_SHOWN = 200

#: A limit may come back rounded: never above what was asked for, and not below this part of it.
_ROUNDED_USD = 1e-4
_LEAST_PART = 0.9

#: What looks like a key in a broker's own words.
_KEY = re.compile(r"\bsk-[A-Za-z0-9_-]{6,}")


class BrokerFault(Exception):
    """The broker did not do what it was asked: one sentence, without any credential.

    ``status`` is the HTTP status of its answer; None where it gave none, so that what was asked may have happened.
    """

    def __init__(self, sentence: str, status: int | None = None) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.status = status


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the credential elsewhere."""

    def redirect_request(self, *_args: Any, **_named: Any) -> None:
        return None


@dataclass(frozen=True)
class BrokerApi:
    """The interface of one broker at ``root`` (no slash at its end), called with ``credential``."""

    who: str
    root: str
    credential: str = field(repr=False)
    ca_bundle: Path | None = None
    timeout: float = 30.0

    @cached_property
    def _opener(self) -> urllib.request.OpenerDirector:
        handler = urllib.request.HTTPSHandler(context=tls_context(self.ca_bundle))
        return urllib.request.build_opener(_NoRedirects, handler)

    def ask(self, method: str, path: str, body: Mapping[str, object] | None = None) -> dict[str, Any]:
        """Call ``method`` on ``path`` and return the JSON object of its answer.

        Raises:
            BrokerFault: no answer came, it is an error, or it is no JSON object.
        """
        status, data = self._send(method, path, self.credential, body)
        if not 200 <= status < 300:  # noqa: PLR2004 — HTTP's success
            told = f"{self.who} answered {method} {_bare(path)} with status {status}{self._why(data)}"
            raise BrokerFault(told, status)
        try:
            document = json.loads(data)
        except ValueError as exc:
            raise BrokerFault(f"{self.who} answered {method} {_bare(path)} with something that is no JSON") from exc
        if not isinstance(document, dict):
            raise BrokerFault(f"{self.who} answered {method} {_bare(path)} with JSON that is no object")
        return document

    def status_for(self, path: str, secret: str) -> int:
        """The HTTP status that another key than the broker's gets for reading ``path``.

        Raises:
            BrokerFault: no answer came.
        """
        return self._send("GET", path, secret, None)[0]

    def _send(self, method: str, path: str, key: str, body: Mapping[str, object] | None) -> tuple[int, bytes]:
        request = urllib.request.Request(  # noqa: S310 — the scheme was checked where the address was set
            self.root + path,
            data=None if body is None else json.dumps(body).encode(),
            method=method,
            headers={
                "Authorization": f"Bearer {key}",
                "Accept": "application/json",
                **({"Content-Type": "application/json"} if body is not None else {}),
            },
        )
        try:
            with self._opener.open(request, timeout=self.timeout) as answer:
                return int(answer.status), answer.read(_MOST)
        except urllib.error.HTTPError as exc:
            with exc:
                return exc.code, _rest(exc)
        except (OSError, http.client.HTTPException) as exc:
            reason = getattr(exc, "reason", None) or exc
            raise BrokerFault(
                self._bare_of_keys(f"{self.who} did not answer {method} {_bare(path)}: {type(exc).__name__}: {reason}")
            ) from exc
        except ValueError as exc:  # its words quote the head, and with it the credential
            raise BrokerFault(
                f"{self.who} could not be asked {method} {_bare(path)}: its address or credential has a character that "
                "no request can hold"
            ) from exc

    def _why(self, data: bytes) -> str:
        """What an error answer says, where it says it in one of the usual places."""
        said = " ".join(_said(data).split())
        return f": {self._bare_of_keys(said)[:_SHOWN]}" if said else ""

    def _bare_of_keys(self, text: str) -> str:
        """A broker's words, which may repeat what it was given."""
        if len(self.credential) >= SHORTEST:
            text = Redactor({"credential": self.credential}).redact_text(text)
        return _KEY.sub("sk-…", text)


def as_asked(limit: object, cap_usd: float) -> bool:
    """Whether a key came back with the limit that was asked for: under another one agents would not be equal."""
    if not isinstance(limit, int | float):
        return False
    return _LEAST_PART * cap_usd <= limit <= cap_usd + _ROUNDED_USD


def _rest(answer: urllib.error.HTTPError) -> bytes:
    try:
        return answer.read(_MOST)
    except (OSError, http.client.HTTPException):
        return b""


def _bare(path: str) -> str:
    """A path without its query and without ids, for messages."""
    return "/".join(part if len(part) < 32 else "…" for part in path.partition("?")[0].split("/"))  # noqa: PLR2004


def _said(data: bytes) -> str:
    """The sentence of an error answer; empty where it has none in the usual places."""
    try:
        found: Any = json.loads(data)
        for name in ("error", "detail", "message", "error", "message"):
            if isinstance(found, dict) and name in found:
                found = found[name]
    except ValueError:
        return ""
    return found if isinstance(found, str) else ""
