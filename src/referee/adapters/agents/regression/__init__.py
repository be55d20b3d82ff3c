"""Programs of the regression agents: one file each, run inside the machine by itself."""
