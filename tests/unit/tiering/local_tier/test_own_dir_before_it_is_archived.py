"""A log directory of this process, as its agent reads it to archive it."""

from local_tiers import DIRS, ORDERS, Host, produce

from local_log.formats.filenames import TopicPartition
from tiering.local_tier.own_log_dir import OwnLogDir


def test_what_is_to_be_archived_survives_a_loss_of_power_with_all_that_says_how_its_transactions_ended() -> None:
    host = Host()
    tier = host.started()
    tier.create_topic("orders")
    produce(tier, ORDERS, 30)
    end, own = tier.log(ORDERS).log_end_offset, [OwnLogDir(host.disk, path, tier) for path in DIRS]
    for one in own:
        one.settle(ORDERS)
        one.settle(TopicPartition("deleted meanwhile", 0))
    host.loses_power()
    assert host.started().log(ORDERS).log_end_offset == end
