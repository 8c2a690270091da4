"""A home for Airflow, set before anybody imports it."""

import os

from airflow_home import IS_THERE, home

if IS_THERE:
    os.environ |= home()
