"""The graders: given calls against the oracle of a case. Pure."""
