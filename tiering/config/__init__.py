"""What the service is told: by a file (TOML or Kafka's properties), by the environment, by defaults; and what it makes of it.

`load.load_config` is the way in, `config.Config` what comes out: one frozen value, which commands and the agent take alike.

    flag  >  environment  >  file  >  default

A topic's own setting comes before one for all topics, whichever of these says it.
"""
