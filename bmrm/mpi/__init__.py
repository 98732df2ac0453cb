"""The multiplexer: one risk whose rows lie on many ranks."""
