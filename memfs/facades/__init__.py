"""Classes for programs, each thin over one open workspace."""
