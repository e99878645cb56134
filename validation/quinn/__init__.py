"""Study of quinn-proto as an endpoint."""
