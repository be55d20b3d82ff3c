"""Makes the HTTP lane of a target; the credential is read here, once, by name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from referee.adapters.lanes.chat import CHAT
from referee.adapters.lanes.credential import read_credential
from referee.adapters.lanes.lane import Dialect, HttpLane, Starter
from referee.adapters.lanes.messages import MESSAGES
from referee.adapters.lanes.ollama import OLLAMA
from referee.adapters.lanes.responses import RESPONSES
from referee.core.bakeoff import LaneKind, Target
from referee.errors import UsageError

DIALECTS: dict[LaneKind, Dialect] = {
    "openai-chat": CHAT,
    "keyword-baseline": CHAT,
    "openai-responses": RESPONSES,
    "anthropic-messages": MESSAGES,
    "ollama": OLLAMA,
}


def make_http_lane(
    target: Target, environ: Mapping[str, str], *, ca_bundle: Path | None = None, starter: Starter | None = None
) -> HttpLane:
    """The lane to a target's endpoint.

    Args:
        target: what is asked.
        environ: where the credential is read by its name; nothing else is taken from it.
        ca_bundle: whom to trust instead of the system's authorities.
        starter: starts the server of an embedded target on the running loop.

    Raises:
        UsageError: the credential is missing, or there is no endpoint.
    """
    if target.base_url is None and starter is None:
        raise UsageError(f"the target {target.name} has no base_url", todo="say in its file where the endpoint is")
    credential = None if target.key_env is None else read_credential(target.key_env, environ)
    return HttpLane(target, DIALECTS[target.lane], credential, ca_bundle=ca_bundle, starter=starter)
