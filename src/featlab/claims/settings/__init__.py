"""Settings, references and formulas that several theorems share: no claim imports another."""
