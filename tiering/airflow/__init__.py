"""The provider for Airflow 3: connection type `tiering`, hook, operators, sensor, trigger and assets. DAGs made of it: `dags/`.

An operator runs a command in a process of its own, which does what it does by hand: as often as it is run, one after the other
or at once, by this task or a twin that Airflow has given up, the archive's chain stays one.
"""
