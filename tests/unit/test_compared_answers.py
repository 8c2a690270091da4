"""How answers of a broker and of the endpoint are compared."""

from compared_answers import differences

from tiering.endpoint.protocol.messages.describe_groups import DescribedGroup, DescribedGroupMember

FIRST, SECOND, THIRD = (DescribedGroupMember("@", instance, "test", "/127.0.0.1") for instance in ("i0", "i1", "i2"))


def test_members_whose_ids_nobody_was_told_are_compared_with_themselves_in_any_order() -> None:
    of_broker = (FIRST, DescribedGroupMember("@", "i1", "another", "/127.0.0.1"), THIRD)
    ours = (THIRD, SECOND, FIRST)
    assert not [one for one in differences((THIRD, FIRST), (FIRST, THIRD)) if not one.path.endswith("[order]")]
    described = (DescribedGroup(0, None, "group", members=members) for members in (of_broker, ours))
    found = [one for one in differences(*described) if not one.path.endswith("[order]")]
    assert [(one.path, one.theirs, one.ours) for one in found] == [("members.client_id", "another", "test")]
