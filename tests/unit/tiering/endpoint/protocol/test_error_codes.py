"""The codes that an answer is counted by."""

from tiering.endpoint.protocol.error_codes import error_codes
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from tiering.endpoint.protocol.messages.heartbeat import HeartbeatResponse
from tiering.endpoint.protocol.messages.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic
from tiering.endpoint.protocol.writing import Written

_RANGE, _LEADER = ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.LEADER_NOT_AVAILABLE


def test_the_codes_of_an_answer_are_those_of_all_its_parts() -> None:
    good, bad = PartitionData(0), PartitionData(1, _RANGE)
    assert error_codes(FetchResponse(responses=(FetchableTopicResponse("a", partitions=(good,)),))) == []
    topics = (FetchableTopicResponse("a", partitions=(bad, good, bad)), FetchableTopicResponse("b", partitions=(bad,)))
    found = FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND, responses=topics)
    assert error_codes(found) == [ErrorCode.FETCH_SESSION_ID_NOT_FOUND, _RANGE, _RANGE, _RANGE]
    assert error_codes(HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)) == [ErrorCode.UNKNOWN_MEMBER_ID]


def test_what_was_written_before_has_none() -> None:
    offline = MetadataResponseTopic(name="a", partitions=(MetadataResponsePartition(_LEADER),))
    assert error_codes(MetadataResponse(topics=(Written(b"\0\5"), offline))) == [_LEADER]  # type: ignore[arg-type]
