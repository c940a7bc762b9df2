"""Readers of published formats, and of lists of image files."""
