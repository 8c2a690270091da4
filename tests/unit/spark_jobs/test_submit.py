"""What spark-submit is called with."""

from spark_jobs.submit import command_line


def test_a_session_of_this_machine_is_reached_by_nobody_else() -> None:
    words = command_line("local[2]", ["spark.ui.enabled=true"], [], "backfill", ["--topic", "orders"])
    assert words[0].endswith("bin/spark-submit")
    assert "spark.driver.bindAddress=127.0.0.1" in words
    assert words.index("spark.ui.enabled=false") < words.index("spark.ui.enabled=true")
    assert words[-3].endswith("spark_jobs/jobs/backfill.py")
    assert words[-2:] == ["--topic", "orders"]


def test_on_a_cluster_only_what_is_given_is_set() -> None:
    words = command_line("yarn", ["a=b"], ["one.zip", "two.zip"], "stats", [])
    assert words[1:-1] == ["--master", "yarn", "--conf", "a=b", "--py-files", "one.zip,two.zip"]
