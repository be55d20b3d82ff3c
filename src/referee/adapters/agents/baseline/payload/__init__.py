"""Programs that are copied to ``/work/project/verify`` and run there again by anyone: standard library only."""
