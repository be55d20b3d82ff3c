"""Reading what a model server says: shapes, arguments, and whose fault a signal is. Pure.

``read`` takes whatever came back and never raises. What the grader has to know of a reading:

- ``fault`` of any blame but ``MODEL``: the attempt is excluded, whatever else stands there.
- ``fault`` with ``Blame.MODEL`` (``refusal``, ``content_filter``, ``malformed_function_call``, ``reasoning_only``,
  ``output_limit``): graded, and failed. The provider's refusal channel says that the answer was withheld, not that no
  tool fits, so it is no clean no-call (the first generation, by its letter, takes any answer without a call). A refusal
  in ordinary words is text like any other.
- ``broken``: a format failure: failed, never an abstention.
- flag ``content_fallback``: the text of a native lane shows a call where calls are not found. It is no call; but it
  is no clean no-call either. Notations that only the tools' names give away are found by ``offered(…).shown(text)``.
"""

from referee.scoring.answers.offered import Offered, offered
from referee.scoring.answers.reading import read, read_message

__all__ = ["Offered", "offered", "read", "read_message"]
