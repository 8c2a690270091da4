"""The machine's time, ids and chance under the name that the service knows them by; `remote.clock` reads them."""

from remote.clock import RandomIds as RandomIds
from remote.clock import SystemClock as SystemClock
from remote.clock import SystemRandomness as SystemRandomness
from remote.clock import jitter as jitter
