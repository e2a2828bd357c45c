"""What a number over n cases can say: intervals, paired tests, power. Pure, and free of chance but for seeded draws."""
