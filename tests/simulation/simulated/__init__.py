"""A deterministic simulation: the real code in greenlets, over a simulated store, simulated disks and one simulated time.

`schedule` has the actors and the order of their steps, `machines` and `stores` what they see of the world, `judge` what must hold
at each step. A seed gives one schedule, on every machine.
"""
