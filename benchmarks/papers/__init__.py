"""The tables and figures of the five papers, rerun: what they claim, whether it holds, by how much."""
