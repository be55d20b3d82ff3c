"""The metering gateway: forwards what agents ask of their model, with the real key, under the run's cap.

::

    machine ──token of the run──▶ server ──▶ call: asked (bounded, written anew) → account (held) → forward (real key)
                                               ◀── passed on chunk by chunk ── metering → account (settled) → journal
"""

from referee.adapters.keys.gateway.keys import GatewayKeys
from referee.adapters.keys.gateway.upstream import Upstream

__all__ = ["GatewayKeys", "Upstream"]
