"""What notes, inside of a rank, how it trains: small bounded records, no collective, nothing changed."""
