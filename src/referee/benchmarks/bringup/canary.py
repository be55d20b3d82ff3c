"""The network canary: was the package registry within reach of machines at all?

Asked of a fresh machine, which no agent has touched, when an attempt claims no pass: a registry that is out of reach
there too is a fault of ours, and a fault of ours is never a zero (methodology §7, §10).
"""

from __future__ import annotations

from collections.abc import Mapping

from referee.core.records import NetworkFacts
from referee.protocols import Machine

#: Small packages of long standing: only whether they can be had matters.
_PIP = (
    "python3 -m pip download --quiet --no-deps --no-cache-dir --retries 1 --timeout 15 --dest /tmp/canary six==1.16.0"
)
_NPM = "npm view --fetch-retries=1 is-number@7.0.0 version"
_SECONDS = 60.0


def ask_network(machine: Machine, facts: Mapping[str, object]) -> NetworkFacts:
    """Fetch a small package with the client of the subject's ecosystem.

    Args:
        machine: a fresh machine.
        facts: what the placement says of the subject.
    """
    node = facts.get("ecosystem") == "npm" or "JavaScript" in str(facts.get("languages"))
    command = _NPM if node else _PIP
    done = machine.execute(("/bin/sh", "-c", command), timeout=_SECONDS, max_output=10_000)
    lines = done.output.decode("utf-8", "replace").strip().splitlines()
    said = "no answer in time" if done.timed_out else lines[-1][:300] if lines else ""
    return NetworkFacts(asked=command, reachable=done.exit_status == 0, said=said)
