"""What an agent's session tells by its events: kept durably first, made into memories afterwards."""
