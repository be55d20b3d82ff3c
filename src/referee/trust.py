"""Whom the programs of a machine trust. Here, below the adapters, because both sandboxes tell them so."""

from __future__ import annotations

from pathlib import Path

#: Where the authorities that a workspace names are mounted.
CA_BUNDLE = "/etc/referee/ca-bundle.pem"

#: Each client's own name for "trust these certificates".
CA_VARIABLES = (
    "SSL_CERT_FILE",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "NODE_EXTRA_CA_CERTS",
    "NPM_CONFIG_CAFILE",
    "CARGO_HTTP_CAINFO",
)


def announced(ca_bundle: Path | None) -> dict[str, str]:
    """The variables that say so in every process of a machine; none where the workspace names no authorities."""
    return {} if ca_bundle is None else dict.fromkeys(CA_VARIABLES, CA_BUNDLE)
