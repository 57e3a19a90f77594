"""Many rows in and out: JSON lines, CSV and arrays."""
