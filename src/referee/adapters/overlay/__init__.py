"""Machines as namespaces over an overlay of the host's root: disposable, but no security boundary."""
