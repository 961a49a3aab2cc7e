"""Evidence: what jobs say about their cases, how that is kept, and how it is told and proved later."""
