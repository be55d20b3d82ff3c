"""From a plan to records: one attempt, a series of attempts, recovery, judging again."""
