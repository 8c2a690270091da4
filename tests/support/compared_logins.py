"""What clients say of who they are, right and wrong, to a broker and to our endpoint, each on a new connection."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from asked_by_wire import Wire
from compared_answers import Compared, Difference, differences
from hypothesis import strategies as st
from scram_client import ScramClient
from users_file import PASSWORDS

from tiering.endpoint.authentication.scram import MECHANISMS
from tiering.endpoint.protocol.api_keys import API_VERSIONS, METADATA, SASL_AUTHENTICATE, SASL_HANDSHAKE, Api
from tiering.endpoint.protocol.messages.api_versions import ApiVersionsRequest
from tiering.endpoint.protocol.messages.metadata import MetadataRequest
from tiering.endpoint.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from tiering.endpoint.protocol.messages.sasl_handshake import SaslHandshakeRequest

BARE = -1
"""The version of a token that is sent without a request around it, as after version 0 of SaslHandshake."""
_NONCE = re.compile(rb"r=client[^,]*")

Word = tuple[Api, int, Any]
"""An API, a version and a request; of a token its `Token`."""


@dataclass(frozen=True, slots=True)
class Token:
    """Of SCRAM a client's first or final message with this user's password, else these bytes."""

    data: bytes = b""
    of_scram: str = ""
    name: str = "alice"
    password: str = PASSWORDS["alice"]


@dataclass
class _Client:
    wire: Wire
    scram: ScramClient | None = None
    last: bytes = b""

    def say(self, api: Api, version: int, request: Any) -> Any:
        """The answer, with a name for what only this server would say; None if the connection was closed."""
        if not isinstance(request, Token):
            return self.wire.ask(api, version, request)
        token = self._token(request)
        if version != BARE:
            answer = self.wire.ask(api, version, SaslAuthenticateRequest(token))
            return None if answer is None else replace(answer, auth_bytes=self._heard(answer.auth_bytes))
        found = self.wire.ask_bytes(len(token).to_bytes(4, "big") + token)
        return None if found is None else SaslAuthenticateResponse(auth_bytes=self._heard(found[4:]))

    def _token(self, of: Token) -> bytes:
        if of.of_scram in MECHANISMS:
            self.scram = ScramClient(MECHANISMS[of.of_scram], of.name, of.password)
            return self.scram.first()
        is_final = of.of_scram == "final" and self.scram is not None and self.last.startswith(b"r=")
        return self.scram.final(self.last) if is_final and self.scram is not None else of.data

    def _heard(self, token: bytes) -> bytes:
        self.last = token
        if token.startswith(b"v=") and self.scram is not None:
            self.scram.check(token)
            return b"v="
        return _NONCE.sub(b"r=client", token)


def logins() -> st.SearchStrategy[list[Word]]:
    """What clients say one after the other."""
    names = st.sampled_from(("PLAIN", "PLAIN", *MECHANISMS, "GSSAPI", "", "plain"))
    handshakes = st.tuples(st.just(SASL_HANDSHAKE), st.sampled_from((0, 1, 1)), st.builds(SaslHandshakeRequest, names))
    versions = st.tuples(st.just(API_VERSIONS), st.integers(0, 4), st.just(ApiVersionsRequest("a", "1")))
    plain = [b"\0alice\0in wonderland"] * 5 + [b"alice\0alice\0in wonderland", b"\0alice\0wrong", b"\0nobody\0x"]
    plain += [b"bob\0alice\0in wonderland", b"", b"\0", b"\0alice", b"\0\0", b"\0alice\0", b"\0alice\0in wonderland\0"]
    odd = (b"n,,n=alice,r=client", b"y,,n=a,r=b", b"n,,n=nobody,r=client", b"\xff\xfe")
    tokens = [Token(data) for data in (*plain, *odd)]
    tokens += [Token(of_scram=name) for name in MECHANISMS for _ in range(3)] + [Token(b"c=biws,r=x,p=AA==", "final")] * 6
    tokens += [Token(of_scram=name, password="wrong") for name in MECHANISMS]
    words = st.tuples(st.just(SASL_AUTHENTICATE), st.sampled_from((0, 1, 2, 2)), st.sampled_from(tokens))
    others = st.tuples(st.just(METADATA), st.integers(9, 12), st.just(MetadataRequest(topics=())))
    any_words = st.lists(st.one_of(handshakes, words, words, versions, others), min_size=1, max_size=6)
    return st.one_of(any_words, st.sampled_from(tuple(_usual())))


def _usual() -> Iterator[list[Word]]:
    """Whole exchanges, each followed by a request."""
    then: Word = (METADATA, 12, MetadataRequest(topics=()))
    for version in (BARE, 0, 1, 2):
        for name in ("PLAIN", *MECHANISMS):
            for password in (PASSWORDS["alice"], "wrong"):
                shaken: Word = (SASL_HANDSHAKE, 0 if version == BARE else 1, SaslHandshakeRequest(name))
                data = f"\0alice\0{password}".encode()
                tokens = [Token(data)] if name == "PLAIN" else [Token(of_scram=name, password=password), Token(of_scram="final")]
                again: Word = (SASL_AUTHENTICATE, 2, Token(data))
                yield [shaken, *((SASL_AUTHENTICATE, version, token) for token in tokens), then, again, shaken, then]


def compare_login(words: Sequence[Word], addresses: Sequence[str]) -> Iterator[tuple[Compared, Difference]]:
    """What differs in the answers of the broker and of the endpoint at these addresses."""
    clients = [_Client(Wire(address)) for address in addresses]
    try:
        for number, (api, version, said) in enumerate(words):
            theirs, ours = (client.say(api, version, said) for client in clients)
            compared = Compared(api, version, said, theirs, ours, before=tuple(one for _, _, one in words[:number]))
            yield from ((compared, one) for one in differences(theirs, ours))
            if theirs is None or ours is None:
                return
    finally:
        for client in clients:
            client.wire.close()
