"""The provider for Airflow 3: connection type `tiering`, hook, operators, sensor, trigger and assets. DAGs made of it: `dags/`.

An operator runs a command in a process of its own. The command can be repeated and can run at the same time as itself, also
in a task that Airflow already considers dead: the archive stays consistent.
"""
