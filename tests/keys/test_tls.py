"""No connection that carries a key leaves its session keys in a file."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from referee.adapters.keys.broker_api import BrokerApi
from referee.tls import tls_context


def test_session_keys_are_written_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = tmp_path / "session-keys"
    monkeypatch.setenv("SSLKEYLOGFILE", str(told))
    assert ssl.create_default_context().keylog_filename == str(told)  # what Python's own default does
    told.unlink()
    context = tls_context(None)
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    with pytest.raises(OSError, match="refused"):
        BrokerApi("nobody", "https://127.0.0.1:1", "key")._opener.open("https://127.0.0.1:1", timeout=5)
    assert not told.exists()
