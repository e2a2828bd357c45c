"""Statistics of n cases: intervals, paired tests, power. Pure, and deterministic by seeded draws."""
