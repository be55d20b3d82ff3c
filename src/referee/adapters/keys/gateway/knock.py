"""Whether an upstream is there and takes its credential: asked before a machine starts, without a question to a model.

The list of models is asked for, which costs nothing. Not every server has one, so only what is plain counts: an address
that refuses the connection or is not known, and a credential that is refused.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
from pathlib import Path
from urllib.parse import urlsplit

from referee.adapters.keys.gateway.forward import credential
from referee.adapters.keys.gateway.upstream import Upstream
from referee.core.spending import Dialect
from referee.errors import ConfigError, KeyUnavailable
from referee.tls import tls_context

#: A server that takes longer for a list may still answer a question.
PATIENCE_SECONDS = 10.0
_MOST = 2**16
_UNAUTHORIZED, _BAD_REQUEST = 401, 400


def knock(upstream: Upstream, dialect: Dialect, ca_bundle: Path | None) -> None:
    """Ask for the list of models.

    Raises:
        ConfigError: the credential is refused.
        KeyUnavailable: nobody is at the address.
    """
    try:
        status, body = _models(upstream, dialect, ca_bundle)
    except (ConnectionRefusedError, socket.gaierror, ssl.SSLCertVerificationError) as exc:
        why = {
            ConnectionRefusedError: "its address refuses the connection",
            ssl.SSLCertVerificationError: "its certificate is not trusted here",
        }.get(type(exc), "its host's name is not known")
        raise KeyUnavailable(
            f"the upstream {upstream.name} is out of reach: {why}",
            todo=f"start it, or correct base_url in [upstreams.{upstream.name}] of referee.toml",
        ) from exc
    except (OSError, ValueError, http.client.HTTPException):
        return
    # A key that may not read the list may still be good for questions.
    narrow = b"scope" in body.lower() or b"permission" in body.lower()
    if (status == _UNAUTHORIZED and not narrow) or (status == _BAD_REQUEST and b"API_KEY_INVALID" in body):
        raise refused(upstream, status)


def refused(upstream: Upstream, status: int) -> ConfigError:
    """The sentence for a credential that the upstream does not take."""
    if upstream.secret is None:
        return ConfigError(
            f"the upstream {upstream.name} asks for a key ({status}), and none is configured",
            todo=f"name the variable that holds it with key_env in [upstreams.{upstream.name}] of referee.toml",
        )
    variable = upstream.variable or "its key"
    return ConfigError(
        f"the upstream {upstream.name} refused {variable} ({status})",
        todo=f"set {variable} to a key that the upstream takes, then try again",
    )


def _models(upstream: Upstream, dialect: Dialect, ca_bundle: Path | None) -> tuple[int, bytes]:
    parts = urlsplit(upstream.base_url)
    host, port = parts.hostname or "", parts.port
    connection = (
        http.client.HTTPSConnection(host, port, timeout=PATIENCE_SECONDS, context=tls_context(ca_bundle))
        if parts.scheme == "https"
        else http.client.HTTPConnection(host, port, timeout=PATIENCE_SECONDS)
    )
    headers = {"accept": "application/json", **credential(upstream, dialect)}
    if dialect == "anthropic-messages":
        headers["anthropic-version"] = "2023-06-01"
    with contextlib.closing(connection):
        connection.request("GET", f"{parts.path.rstrip('/')}/models", headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read(_MOST)
