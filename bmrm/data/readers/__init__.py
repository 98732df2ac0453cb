"""Files of every format, read in shares of rows."""
