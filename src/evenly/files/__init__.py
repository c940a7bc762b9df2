"""Files from strangers: only regular files are opened, and their claims are checked before memory is reserved."""
