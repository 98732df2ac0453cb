"""The minimum over constants added to the scores of all rows, and what makes it a valid cut: a free intercept."""
