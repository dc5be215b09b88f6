"""Takes notes inside a rank about its training: small bounded records, without collectives or side effects."""
