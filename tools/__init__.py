"""Programs that set up, check and document the project; run by make, not shipped."""
