"""Serves the web application that a module offers (``app``, ``application``, ``create_app()``): WSGI or ASGI.

Usage: ``verify_app.py MODULE PORT``. Status 3 when the module offers none.
"""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from typing import Any
from wsgiref.simple_server import make_server

_NAMES = ("app", "application", "wsgi_app", "api", "create_app", "make_app", "default_app")


def find(module: Any) -> Any:
    """The application object of a module, or None."""
    for name in _NAMES:
        found = getattr(module, name, None)
        if inspect.ismodule(found):
            found = getattr(found, "app", None)
        if inspect.isfunction(found) and name in {"create_app", "make_app"}:
            try:
                found = found()
            except TypeError:
                continue
        if found is not None and callable(found) and not inspect.isclass(found) and not inspect.isfunction(found):
            return found
    return None


def is_asgi(app: Any) -> bool:
    """Whether an application speaks ASGI."""
    return inspect.iscoroutinefunction(app) or inspect.iscoroutinefunction(getattr(app, "__call__", None))  # noqa: B004


def main(words: list[str]) -> int:
    """Serve until stopped."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
    sys.path.insert(0, os.getcwd())
    app = find(importlib.import_module(words[0]))
    if app is None:
        return 3
    port = int(words[1])
    if is_asgi(app):
        uvicorn = importlib.import_module("uvicorn")
        uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")
        return 0
    with make_server("127.0.0.1", port, app) as server:
        server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
