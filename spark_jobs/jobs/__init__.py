"""The jobs, one file each: `python -m spark_jobs.jobs.NAME`."""

import sys
from importlib.util import find_spec

if find_spec("pyspark") is None:
    _MISSING = "Spark jobs need PySpark, which is not there yet; pip install 'kafka-tiering[spark]'"
    if sys.argv[:1] == ["-m"]:  # Python's word for itself while it looks for the job that it is to run
        print(_MISSING, file=sys.stderr)
        raise SystemExit(2)
    raise ImportError(_MISSING)
