"""The bake-off as it observes: identities, fixed prompts, the names as sent. It never judges."""
