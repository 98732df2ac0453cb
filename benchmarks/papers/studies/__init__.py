"""A file for each study, of the name of its claim; `STUDY` is what it defines."""
