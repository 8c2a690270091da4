import gc
import resource

from tiering.machine import allow_open_files, collect_seldom


def test_a_server_may_open_as_many_files_as_its_user() -> None:
    before = soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 500), hard))
        assert allow_open_files() == hard
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_server_is_not_stopped_by_looks_at_all_its_objects() -> None:
    looks, before = [], gc.get_threshold()

    def count(phase: str, info: dict[str, int]) -> None:
        looks.append(info["generation"])

    gc.callbacks.append(count)
    try:
        collect_seldom()
        kept = [[number] for number in range(300_000)]
        assert gc.get_freeze_count()
    finally:
        gc.callbacks.remove(count)
        gc.set_threshold(*before)
        gc.unfreeze()
    assert len(kept) == 300_000
    assert 2 not in looks
    assert 1 in looks
