"""The one key of each run: brokers, the metering gateway, the ledger."""
