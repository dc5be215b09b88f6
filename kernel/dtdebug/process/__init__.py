"""Optional, quick probes of this process and its devices."""
