"""What searches share: folds, candidates, trainings of a fold, their judgement, and how one is chosen."""
