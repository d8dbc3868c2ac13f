"""Facades: the seeds' classes by their own names, each thin over one open workspace."""
