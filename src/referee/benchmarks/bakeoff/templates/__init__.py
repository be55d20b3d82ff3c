"""Parametrised templates: with a private seed they make a gate-size suite that is fresh each cycle (bake-off §8).

A template draws its parameters, words them as a request in German or English and makes the gold of the same
parameters, so that no gold is written by hand. The suite follows from template version, seed, cycle and count alone.
The seed stands nowhere in it: its provenance has a digest, salted with the cycle, by which the seed can be checked
once it is made public.
"""

from __future__ import annotations

from referee.benchmarks.bakeoff.templates.rotate import (
    FEWEST,
    MOST,
    SHORTEST_SEED,
    TEMPLATE_VERSION,
    kinds,
    rotate,
)

__all__ = ["FEWEST", "MOST", "SHORTEST_SEED", "TEMPLATE_VERSION", "kinds", "rotate"]
