"""Real agents, their keys and the model server that is scripted for them."""
