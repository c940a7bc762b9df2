"""Figures, tables and pages, drawn from records and arrays; never imports torch."""
