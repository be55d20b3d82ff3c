"""What an agent did in a recorded session: its commands and changes, told by the recording alone (``steps.Told``).

One pure parser a format; ``reading.read`` chooses by the harness that stands in the run's lock. A format that cannot
tell is said to be one: nothing is guessed.
"""
