"""Untrusted files: only regular files are opened, and their headers are checked before memory is allocated."""
