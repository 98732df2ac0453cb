"""The config file: its sections, their checks, their schema."""
