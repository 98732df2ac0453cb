"""What losses share: prepared losses, domains of targets, sweeps over rows, groups, sentences, rankings."""
