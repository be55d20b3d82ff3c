"""The host-side recorder: raw bytes and their timing are primary, everything else is derived."""
