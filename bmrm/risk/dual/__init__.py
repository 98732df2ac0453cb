"""The ability `DualSteps`: dual coordinate ascent over the rows or sentences of one process."""
