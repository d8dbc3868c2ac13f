"""Sources: what gives an agent its context, built in and from others."""
