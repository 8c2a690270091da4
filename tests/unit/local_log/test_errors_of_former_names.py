"""The archive's errors had a module of their own; programs that import them from there go on."""

from local_log import errors


def test_the_errors_of_the_archive_are_still_imported_from_where_they_were() -> None:
    from local_log.errors import LogError, NotFound, WrongKey

    assert (NotFound, LogError, WrongKey) == (errors.NotFound, errors.LogError, errors.WrongKey)
