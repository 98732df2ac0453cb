"""Two trees of this package compared: the same fits give the same results (`results`), as quickly (`speed`)."""
