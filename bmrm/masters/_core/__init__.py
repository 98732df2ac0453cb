"""What engines share: the planes they work on, their rows, bounds of rough solutions, mixtures that cancel."""
