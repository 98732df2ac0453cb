"""What a run recorded here would take on a described cluster: time by part, memory of a rank, what binds first."""
