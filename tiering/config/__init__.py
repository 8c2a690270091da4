"""The configuration of the service: from a file (TOML or Kafka's properties), the environment, and defaults.

`load.load_config` reads it into a `config.Config`, a frozen value that commands and the agent use.

    flag  >  environment  >  file  >  default

A topic's own setting overrides one for all topics, whatever their sources are.
"""
