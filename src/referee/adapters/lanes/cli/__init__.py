"""Agent CLIs as a way to a model: the schemas stand in the prompt, an envelope comes back (bake-off §4)."""
