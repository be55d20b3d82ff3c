"""Frozen types and arithmetic: no clock, disk, network, process or chance."""
