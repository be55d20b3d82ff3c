"""How every adapter that carries a key verifies the other side of a TLS connection."""

from __future__ import annotations

import ssl
from pathlib import Path


def tls_context(ca_bundle: Path | None) -> ssl.SSLContext:
    """Verification of certificates and names, by the given bundle or by the system's authorities.

    Not ``ssl.create_default_context``: that one writes session keys where an environment variable tells it to.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if ca_bundle is None:
        context.load_default_certs()
    else:
        context.load_verify_locations(cafile=ca_bundle)
    return context
