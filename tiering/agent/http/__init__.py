"""The agent's HTTP endpoint: server, guard and client."""
