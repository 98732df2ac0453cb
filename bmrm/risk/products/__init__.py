"""Products of the features with weights and scores, and of the features with themselves."""
