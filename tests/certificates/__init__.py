"""Random problems on which every claim of every solver is checked against formulas written apart."""
