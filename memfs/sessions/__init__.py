"""Make memories of agents' sessions: their events are kept durably first and drained into memories afterwards."""
