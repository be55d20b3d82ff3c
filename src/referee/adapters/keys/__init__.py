"""The one key of each run: the metering gateway, and brokers of others."""
