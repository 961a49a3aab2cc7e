"""How jobs stand, for those who ask: people, monitors, collectors of metrics."""
