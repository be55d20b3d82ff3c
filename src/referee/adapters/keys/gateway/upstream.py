"""An upstream of the gateway: where requests go, with which credential, at which prices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from referee.core.redaction import SHORTEST
from referee.core.spending import Dialect, Price


@dataclass(frozen=True)
class Upstream:
    """One provider's address as a workspace configures it (``[upstreams.NAME]``).

    Args:
        name: in the workspace.
        base_url: ends with the provider's version (``https://HOST/v1``).
        secret: the real credential; None where the upstream asks for none. It leaves this process only in the head of
            a forwarded request.
        dialects: the surfaces that it speaks.
        provider: its id in the price list, where the address alone does not tell it.
        prices: explicit prices by model; they stand before the price list.
        max_output_tokens: the most output of one answer: a request that asks for more, or says nothing, gets this.
        variable: the name of the variable that holds the credential, for sentences.
        unset: the variable that should hold the credential and is not set; None where nothing is missing.
    """

    name: str
    base_url: str
    secret: str | None = field(default=None, repr=False)
    dialects: tuple[Dialect, ...] = ("openai-chat",)
    provider: str | None = None
    prices: Mapping[str, Price] = field(default_factory=dict)
    max_output_tokens: int = 32_000
    unset: str | None = None
    variable: str | None = None

    @property
    def host(self) -> str:
        """Its host's name, for what only one provider does."""
        return urlsplit(self.base_url).hostname or ""

    def secrets(self) -> dict[str, str]:
        """What of it must be found nowhere: nothing where the credential is too short to be told from text.

        Such a one is a placeholder ("x", "none", "EMPTY"), as servers without keys are given: looking for it would
        alter the model's answers.
        """
        if self.secret is None or len(self.secret.strip()) < SHORTEST:
            return {}
        return {f"upstream-key-{self.name}": self.secret}
