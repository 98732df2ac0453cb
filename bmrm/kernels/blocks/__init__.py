"""Compiled functions of penalties that are sums over blocks of coordinates."""
