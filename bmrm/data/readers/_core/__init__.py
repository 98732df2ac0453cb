"""Shared parts of readers: rows as read, shares of a file, the registry of formats."""
