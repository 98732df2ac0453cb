"""The ability `DualBlocks`: dual coordinate ascent over the rows or sentences of one process."""
