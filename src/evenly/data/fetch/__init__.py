"""Download published data sets: complete, checked and safely unpacked. No torch."""
