"""Tenure inside other programs: a file for each."""
