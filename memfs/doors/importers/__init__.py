"""Read the memories of other stores."""
