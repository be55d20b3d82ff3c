"""Pure judgement: from facts to scores, boards and verdicts; no clock, disk, network or process."""
