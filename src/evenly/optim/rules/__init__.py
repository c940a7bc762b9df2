"""The rules of the SAM family, a file each, by the names in `evenly.rules`."""
