"""Where published data come from, and how they get here: whole, checked and safely unpacked. No torch."""
