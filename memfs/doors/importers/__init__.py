"""Read the memories of other stores."""

STORES = ("claude-code", "markdown", "conventions")
"""The names of the formats; kept here, so that --help imports none of them."""
