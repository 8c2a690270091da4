"""Pools for who reads ahead, without a thread: what runs when is the test's choice."""

import random  # noqa: TID251  # seeded
from collections.abc import Callable
from typing import Any


class Later:
    """An answer that is worked out when the pool says so, or when somebody cannot wait any longer."""

    def __init__(self, call: Callable[..., bytes], args: tuple[Any, ...]) -> None:
        self._call = call
        self._args = args
        self._answer: bytes | Exception | None = None
        self.is_cancelled = False

    @property
    def is_done(self) -> bool:
        return self._answer is not None

    def run(self) -> None:
        if self._answer is None and not self.is_cancelled:
            try:
                self._answer = self._call(*self._args)
            except Exception as e:
                self._answer = e

    def result(self) -> bytes:
        self.run()
        assert self._answer is not None
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer

    def cancel(self) -> bool:
        self.is_cancelled = not self.is_done
        return self.is_cancelled


class LazyPool:
    """Runs nothing before its result is asked for. `asked` is all that was submitted."""

    def __init__(self) -> None:
        self.asked: list[Later] = []

    def submit(self, call: Callable[..., bytes], /, *args: Any) -> Later:
        self.asked.append(Later(call, args))
        return self.asked[-1]


class ShuffledPool(LazyPool):
    """Runs some of what waits at every call, in an order that the seed decides."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._random = random.Random(seed)

    def submit(self, call: Callable[..., bytes], /, *args: Any) -> Later:
        answer = super().submit(call, *args)
        for later in self._random.sample(self.asked, self._random.randrange(len(self.asked) + 1)):
            later.run()
        return answer


class InstantPool(LazyPool):
    """Runs each call as it is submitted."""

    def submit(self, call: Callable[..., bytes], /, *args: Any) -> Later:
        answer = super().submit(call, *args)
        answer.run()
        return answer
