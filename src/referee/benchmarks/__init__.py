"""The benchmarks: they observe and never judge."""
