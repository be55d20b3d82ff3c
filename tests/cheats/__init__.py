"""Cheats that are planted, and their honest twins: real attempts in real machines, under edition 2."""
