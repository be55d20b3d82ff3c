"""What an upstream says by the status of an error alone."""

from __future__ import annotations

#: What these say is about the account behind the real key: said in our words.
OF_OUR_ACCOUNT = {
    401: "the upstream does not take the gateway's credential",
    402: "the upstream's account has no credit",
    403: "the upstream does not permit this call",
    429: "the upstream's limit of calls is reached; try again later",
}
#: Errors behind which a model may have worked: a middleman gave up waiting. Other errors say that nothing was charged.
MAYBE_CHARGED = frozenset({408, 499, 502, 504, 520, 522, 524})
