"""The subjects of certificates, by which ACLs know clients."""

from pathlib import Path

import pytest
from certificates import Authority
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from distinguished_names import COMMON_NAME, IA5, SUBJECTS, element, part, whole

from tiering.endpoint.authentication.distinguished_name import subject_of

_VERSION = element(0xA0, element(2, b"\2"))
_FIELDS = (element(2, b"\1"), element(0x30, b""), whole([part(COMMON_NAME, b"issuer")]), element(0x30, b""))


def certificate(subject: bytes, *before: bytes) -> bytes:
    """As much of one as says who it is for."""
    return element(0x30, element(0x30, b"".join([*(before or (_VERSION, *_FIELDS)), subject, element(0x30, b"")])))


@pytest.mark.parametrize(("subject", "text"), SUBJECTS.items(), ids=SUBJECTS.values())
def test_a_subject_is_called_what_java_calls_it(subject: bytes, text: str) -> None:
    assert subject_of(certificate(subject)) == text
    assert subject_of(certificate(subject, *_FIELDS)) == text  # of version 1


def test_a_real_certificate_is_read(tmp_path: Path) -> None:
    file = Authority(tmp_path).signed("CN=alice,OU=Clients+L=Here,O=Example", "alice.pem")
    der = x509.load_pem_x509_certificate(Path(file).read_bytes()).public_bytes(Encoding.DER)
    assert subject_of(der) == "CN=alice,L=Here+OU=Clients,O=Example"  # a set is ordered by its bytes


def test_a_subject_that_is_no_text_or_cut_anywhere_is_refused() -> None:
    good = certificate(whole([part(COMMON_NAME, b"alice")]))
    for end in range(len(good)):
        with pytest.raises(ValueError, match=r"."):
            subject_of(good[:end])
    for subject in (
        whole([part(COMMON_NAME, b"\xff")]),
        whole([part(COMMON_NAME, b"Zo\xeb", IA5)]),
        whole([element(0x30, b"")]),
        whole([element(0x30, element(2, b"\1") + element(2, b"\1"))]),
        whole([element(0x30, element(6, b"") + element(2, b"\1"))]),
        whole([element(0x30, element(6, b"\x81") + element(2, b"\1"))]),
        whole([element(0x30, element(6, b"\x81" * 200 + b"\1") + element(2, b"\1"))]),
        element(2, b"\1"),
    ):
        with pytest.raises(ValueError, match=r"."):
            subject_of(certificate(subject))
