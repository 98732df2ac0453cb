"""From a config or arrays to a model and its files: loading, solving, measuring, writing."""
