"""What readers of every format share: rows as read, shares of a file, the register of formats."""
