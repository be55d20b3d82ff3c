"""Loopback servers of two brokers' interfaces, as their documentation and sources describe them.

``ScriptedOpenRouter`` stands for OpenRouter's interface for provisioning keys, which cannot be reached from a test;
``ScriptedLiteLLM`` for a LiteLLM proxy's endpoints for virtual keys, which want a database (docs/keys.md says why it is
not the real proxy). Each also answers calls to a model with the keys that it made, and bills them.

::

    with ScriptedOpenRouter() as server:
        server.url, server.master               # where it is, and its provisioning key
        server.keys                             # id -> Key, as it is now
        server.faults[("POST", "/keys")] = Fault(status=503)
"""

from __future__ import annotations

import hashlib
import json
import secrets
import threading
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlsplit

#: What one call to the model costs, US dollars.
CALL_USD = 0.25


@dataclass
class Key:
    """A key as the server has it. ``counted``: what of ``spent`` its interface tells already."""

    secret: str = field(repr=False)
    name: str
    limit: float
    body: dict[str, Any]
    spent: float = 0.0
    counted: float = 0.0
    blocked: bool = False
    deleted: bool = False


@dataclass
class Fault:
    """What goes wrong with a call: a ``status`` instead of doing it; ``lose``: do it and break the connection.

    ``nothing``: answer as if it had been done. ``times``: so often. ``hold``: do it, and answer only once that is set.
    """

    status: int | None = None
    lose: bool = False
    nothing: bool = False
    times: int = 1_000_000
    hold: threading.Event | None = None


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_args: object) -> None:
        """Who asked went away: no matter."""


class ScriptedBroker(ABC):
    """What both have in common."""

    def __init__(self, address: str = "127.0.0.1") -> None:
        self.master = f"sk-master-{secrets.token_hex(16)}"
        self.keys: dict[str, Key] = {}
        self.faults: dict[tuple[str, str], Fault] = {}
        self.got: list[tuple[str, str]] = []
        self.lagging = False
        self.changed: dict[str, Any] = {}  # replaces members of what a made key is told to be
        self.made = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_args: Any) -> None:
                """Silence."""

            def _serve(self) -> None:
                outer.serve(self)

            do_GET = do_POST = do_PATCH = do_DELETE = _serve  # noqa: N815 — http.server's names

        self._server = _Server((address, 0), Handler)
        self.url = f"http://{address}:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_ended: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop answering."""
        self._server.shutdown()
        self._server.server_close()

    @property
    def alive(self) -> set[str]:
        """Names of the keys that are not deleted."""
        return {key.name for key in self.keys.values() if not key.deleted}

    def serve(self, call: BaseHTTPRequestHandler) -> None:
        """Answer one request."""
        length = int(call.headers.get("Content-Length") or 0)
        body = json.loads(call.rfile.read(length) or b"{}")
        parts = urlsplit(call.path)
        path, query = unquote(parts.path), {name: one[-1] for name, one in parse_qs(parts.query).items()}
        credential = (call.headers.get("Authorization") or "").removeprefix("Bearer ")
        self.got.append((call.command, path))
        fault = self._fault(call.command, path)
        if fault is not None and fault.status is not None:
            said = {"error": {"message": f"scripted failure, and {self.master} leaks", "code": fault.status}}
            _answer(call, fault.status, said, location="/elsewhere" if fault.status in range(300, 400) else None)
            return
        if fault is not None and fault.nothing:
            _answer(call, 200, {"deleted": True, "deleted_keys": body.get("keys", [])})
            return
        status, said = self.do(call.command, path, query, body, credential)
        if fault is not None and fault.hold is not None:
            self.made.set()
            fault.hold.wait(60)
        if fault is not None and fault.lose:
            call.close_connection = True
            call.connection.close()
            return
        _answer(call, status, said)

    def _fault(self, method: str, path: str) -> Fault | None:
        for (wanted, end), fault in self.faults.items():
            if wanted == method and end in path and fault.times > 0:
                fault.times -= 1
                return fault
        return None

    @abstractmethod
    def do(
        self, method: str, path: str, query: dict[str, str], body: dict[str, Any], credential: str
    ) -> tuple[int, dict[str, Any]]:
        """Carry out a call: its status and answer."""

    def by_secret(self, secret: str) -> Key | None:
        """The key of that secret that lives and is not blocked."""
        found = [key for key in self.keys.values() if key.secret == secret]
        return next((key for key in found if not key.deleted and not key.blocked), None)

    def call_model(self, credential: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """One call to a model: refused for a dead key, or one whose limit is used up."""
        key = self.by_secret(credential)
        if key is None:
            return 401, {"error": {"message": "No such key", "code": 401}}
        if key.spent >= key.limit:
            return 402, {"error": {"message": "The key's limit is used up", "code": 402}}
        key.spent += CALL_USD
        if not self.lagging:
            key.counted = key.spent
        message = {"role": "assistant", "content": "ok"}
        usage = {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return 200, {
            "id": "1",
            "object": "chat.completion",
            "model": body["model"],
            "choices": [choice],
            "usage": usage,
        }

    def count(self) -> None:
        """Let the interface tell what was spent."""
        for key in self.keys.values():
            key.counted = key.spent


class ScriptedOpenRouter(ScriptedBroker):
    """OpenRouter's ``/api/v1/keys``, ``/api/v1/key`` and ``/api/v1/chat/completions``."""

    page = 100

    @property
    def base(self) -> str:
        """What a workspace's ``base_url`` says."""
        return f"{self.url}/api"

    def do(
        self, method: str, path: str, query: dict[str, str], body: dict[str, Any], credential: str
    ) -> tuple[int, dict[str, Any]]:
        if (method, path) == ("POST", "/api/v1/chat/completions"):
            return self.call_model(credential, body)
        if (method, path) == ("GET", "/api/v1/key"):
            key = self.by_secret(credential)
            return (200, {"data": {"label": key.name}}) if key else (401, {"error": {"message": "User not found."}})
        if credential != self.master:
            return 401, {"error": {"message": "Invalid management key", "code": 401}}
        if (method, path) == ("POST", "/api/v1/keys"):
            return self._create(body)
        if (method, path) == ("GET", "/api/v1/keys"):
            shown = [one for one in self.keys.items() if not one[1].deleted]
            if query.get("include_disabled") != "true":
                shown = [one for one in shown if not one[1].blocked]
            offset = int(query.get("offset", 0))
            return 200, {"data": [_openrouter(*one) for one in shown[offset : offset + self.page]]}
        return self._one(method, path.removeprefix("/api/v1/keys/"), body)

    def _create(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        secret = f"sk-or-v1-{secrets.token_hex(32)}"
        known = {"name", "limit", "limit_reset", "include_byok_in_limit", "expires_at", "workspace_id"}
        if not isinstance(body.get("name"), str) or set(body) - known:
            return 400, {"error": {"message": "Invalid request parameters", "code": 400}}
        identity = hashlib.sha256(secret.encode()).hexdigest()
        self.keys[identity] = Key(secret, body["name"], body["limit"], body)
        return 201, {"data": _openrouter(identity, self.keys[identity]) | self.changed, "key": secret}

    def _one(self, method: str, identity: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        key = self.keys.get(identity)
        if key is None or key.deleted:
            return 404, {"error": {"message": "API key not found", "code": 404}}
        if method == "DELETE":
            key.deleted = True
            return 200, {"deleted": True}
        if method == "PATCH":
            key.blocked = body["disabled"]
        return 200, {"data": _openrouter(identity, key)}


class ScriptedLiteLLM(ScriptedBroker):
    """A LiteLLM proxy's ``/key/…`` and ``/v1/chat/completions``. Deleted keys are still told of, as newer ones do."""

    archives = True

    @property
    def base(self) -> str:
        """What a workspace's ``base_url`` says."""
        return self.url

    def do(
        self, method: str, path: str, query: dict[str, str], body: dict[str, Any], credential: str
    ) -> tuple[int, dict[str, Any]]:
        if (method, path) == ("POST", "/v1/chat/completions"):
            return self.call_model(credential, body)
        if (method, path) == ("GET", "/v1/models"):
            known = self.by_secret(credential)
            return (200, {"data": []}) if known else (401, _proxy_error("Invalid proxy server token"))
        if credential != self.master:
            return 401, _proxy_error("Authentication Error, Invalid proxy server token passed")
        whole = {"/key/generate": self._generate, "/key/delete": self._delete}
        if method == "POST" and path in whole:
            return whole[path](body)
        if (method, path) == ("GET", "/key/list"):
            return self._list(int(query.get("size", 10)), int(query.get("page", 1)))
        return self._one(path, query.get("key") or body.get("key", ""))

    def _one(self, path: str, identity: str) -> tuple[int, dict[str, Any]]:
        key = self.keys.get(identity)
        if key is None or (key.deleted and not (self.archives and path == "/key/info")):
            return 404, _proxy_error("Key not found in database")
        if path == "/key/block":
            key.blocked = True
            return 200, _litellm(key)
        return 200, {"key": identity, "info": _litellm(key)}

    def _list(self, size: int, page: int) -> tuple[int, dict[str, Any]]:
        shown = [one for one in self.keys.items() if not one[1].deleted]
        keys = [_litellm(key) | {"token": identity} for identity, key in shown[(page - 1) * size : page * size]]
        pages = -(-len(shown) // size)
        return 200, {"keys": keys, "total_count": len(shown), "total_pages": pages, "current_page": page}

    def _delete(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        found = [self.keys[one] for one in body["keys"] if one in self.keys and not self.keys[one].deleted]
        if not found:
            return 404, _proxy_error("{'error': 'No keys found'}")
        for key in found:
            key.deleted = True
        return 200, {"deleted_keys": body["keys"]}

    def _generate(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if any(key.name == body["key_alias"] and not key.deleted for key in self.keys.values()):
            return 400, _proxy_error(f"Key with alias '{body['key_alias']}' already exists.")
        secret = body["key"]
        if not secret.startswith("sk-"):
            return 400, _proxy_error("Invalid key format")
        identity = hashlib.sha256(secret.encode()).hexdigest()
        self.keys[identity] = Key(secret, body["key_alias"], body["max_budget"], body)
        said = _litellm(self.keys[identity]) | {"key": secret, "token_id": identity}
        return 200, said | self.changed


def _openrouter(identity: str, key: Key) -> dict[str, Any]:
    return {
        "hash": identity,
        "name": key.name,
        "label": f"{key.secret[:12]}...{key.secret[-3:]}",
        "disabled": key.blocked,
        "limit": key.limit,
        "limit_remaining": max(0.0, key.limit - key.counted),
        "limit_reset": key.body.get("limit_reset"),
        "include_byok_in_limit": key.body.get("include_byok_in_limit", False),
        "usage": key.counted,
        "byok_usage": 0,
        "created_at": "2026-11-30T10:00:00Z",
        "updated_at": None,
        "expires_at": key.body.get("expires_at"),
    }


def _litellm(key: Key) -> dict[str, Any]:
    return {
        "key_alias": key.name,
        "spend": key.counted,
        "max_budget": key.limit,
        "budget_duration": None,
        "models": key.body.get("models", []),
        "blocked": key.blocked,
        "status": "deleted" if key.deleted else "revoked" if key.blocked else "active",
        **({"deleted_at": "2026-11-30T11:00:00Z"} if key.deleted else {}),
    }


def _proxy_error(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "auth_error", "param": "key", "code": "400"}}


def _answer(call: BaseHTTPRequestHandler, status: int, said: dict[str, Any], location: str | None = None) -> None:
    data = json.dumps(said).encode()
    call.send_response(status)
    call.send_header("Content-Type", "application/json")
    call.send_header("Content-Length", str(len(data)))
    if location is not None:
        call.send_header("Location", location)
    call.end_headers()
    call.wfile.write(data)
