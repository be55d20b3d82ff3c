"""One call to a model with a run's key, as an agent makes it."""

from __future__ import annotations

import json
import urllib.error
import urllib.request

from referee.protocols import Access

#: What stands for the status where nobody answers.
NOBODY = 0


def call_model(access: Access, *, max_tokens: int = 16) -> int:
    """Ask one question on the surface of chat completions: the HTTP status, or ``NOBODY``."""
    body = {"model": access.model, "max_tokens": max_tokens, "messages": [{"role": "user", "content": "hello"}]}
    request = urllib.request.Request(
        f"{access.base_url}/v1/chat/completions",
        data=json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {access.secret}", "Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as exc:
        with exc:
            return exc.code
    except OSError:
        return NOBODY
