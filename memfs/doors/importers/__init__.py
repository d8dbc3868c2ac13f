"""Read the memories of other stores."""

STORES = ("claude-code", "agents-md", "mcp-memory", "markdown")
"""The names of the formats that ``formats`` reads; kept here, so that --help imports none of them."""
