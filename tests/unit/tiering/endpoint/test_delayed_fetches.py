import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
from asked_endpoint import Endpoint
from tiered_worlds import World

from tiering.endpoint.apis.kafka_apis import Waits
from tiering.endpoint.delayed_fetches import DelayedFetch, DelayedFetches


class SeenLogs(dict[Any, Any]):
    """The logs that a fetch saw, and who looks through them."""

    def __init__(self) -> None:
        super().__init__({("g-tiny", 0): None})
        self.looked = set[int]()

    def __iter__(self) -> Any:
        self.looked.add(threading.get_ident())
        return super().__iter__()

    def items(self) -> Any:
        self.looked.add(threading.get_ident())
        return super().items()


def test_the_logs_that_fetches_wait_for_are_gone_through_on_a_thread(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tiering.endpoint.delayed_fetches.POLL_S", 0)
    endpoint, seen = Endpoint(world.folders["local alone"], None), SeenLogs()
    request: Waits = SimpleNamespace(seen=seen, least_bytes=None)  # type: ignore[assignment]

    async def asked() -> list[int]:
        found, woken = asyncio.Event(), list[int]()

        def ask(number: int) -> None:
            woken.append(number)
            found.set()

        delayed, loop = DelayedFetches(endpoint.context.logs, pool, ask), asyncio.get_running_loop()
        fetches = [DelayedFetch(request, loop.time() + 60) for _ in range(2)]
        for number, fetch in enumerate(fetches):
            delayed.wait(number, fetch)
        delayed.remove(0)
        await asyncio.wait_for(found.wait(), 20)
        assert delayed.take(1) is fetches[1]
        return woken

    with ThreadPoolExecutor(1) as pool:
        assert asyncio.run(asked()) == [1]
        assert seen.looked == {pool.submit(threading.get_ident).result()}


@pytest.mark.parametrize("fails", ["a topic", "what is known"])
def test_a_topic_that_cannot_be_looked_at_does_not_end_the_looks_for_others(
    world: World, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    monkeypatch.setattr("tiering.endpoint.delayed_fetches.POLL_S", 0)
    endpoint = Endpoint(world.folders["local alone"], None)
    looks: list[str] = []

    class Broken:
        def topic(self, name: str) -> None:
            looks.append(name)
            raise KeyError(name)

        def watch(self, seen: object, wake: object, least_bytes: object) -> None:
            """As HostedLogs."""

        def known(self) -> Any:
            if fails == "what is known":
                raise KeyError(fails)
            return endpoint.context.logs.known()

    async def looked_twice() -> None:
        delayed, loop = DelayedFetches(Broken(), pool, lambda number: None), asyncio.get_running_loop()  # type: ignore[arg-type]
        request: Waits = SimpleNamespace(seen={("nowhere", 0): None}, least_bytes=None)  # type: ignore[assignment]
        delayed.wait(0, DelayedFetch(request, loop.time() + 60))
        while len(looks) < 2:
            await asyncio.sleep(0.01)

    with ThreadPoolExecutor(1) as pool:
        asyncio.run(asyncio.wait_for(looked_twice(), 20))
