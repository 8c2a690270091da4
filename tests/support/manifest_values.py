"""Whatever a manifest's values may be, as strategies."""

from hypothesis import strategies as st

from local_log.formats.checkpoints import EpochEntry
from remote.keys import AUX, LOG, is_topic, page_name, segment_name
from remote.manifest.gaps import Divergence, Gap
from remote.manifest.model import Deleting, Loss, Manifest, PageBounds, PageRef, PendingWrite, WriteMark
from remote.manifest.segment_entry import AuxRange, EncodingInfo, SegmentEntry

ints = st.integers(0, 2**31 - 1)  # what every field of a manifest may have
times = st.integers(-(2**63), 2**63 - 1)
offsets = st.integers(0, 2**63 - 1)
ids = st.integers(0, 2**128 - 1).map("{:032x}".format)
topics = st.text("abz09._-", min_size=1, max_size=8).filter(is_topic)
topic_ids = st.integers(0, 2**64).map("{:->22}".format)
log_names, aux_names = (st.builds(segment_name, offsets, st.integers(-1, 99), ids, st.just(suffix)) for suffix in (LOG, AUX))
page_names = st.builds(page_name, offsets, offsets, ids)
epochs = st.lists(st.builds(EpochEntry, ints, ints), max_size=3).map(tuple)
values = st.recursive(
    st.none() | st.booleans() | ints | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=5,
)
unknowns = st.dictionaries(st.text(max_size=5).map("x_".__add__), values, max_size=3)
encodings = st.builds(
    EncodingInfo,
    *[st.text(max_size=8), st.lists(ints, max_size=3).map(tuple), *[ints] * 4, *[st.text(max_size=8)] * 3, unknowns],
)
entries = st.builds(
    SegmentEntry,
    *[st.text(max_size=8), *[ints] * 3, times, ints, epochs, log_names, ints, ints, aux_names, ints, ints],
    st.dictionaries(st.text(max_size=8), st.builds(AuxRange, ints, ints, ints), max_size=3),
    st.booleans(),
    st.text(max_size=8),
    ints,
    st.none() | encodings,
    st.none() | times,
    unknowns,
)
gaps = st.builds(Gap, ints, ints, st.text(max_size=8), ints, st.text(max_size=8), unknowns)
losses = st.builds(Loss, ints, ints, st.text(max_size=8), ints, unknown=unknowns) | st.builds(
    Loss, ints, ints, st.text(max_size=8), ints, st.integers(1, 2**31), st.text(max_size=8), unknowns
)
by_source = st.dictionaries(st.text(max_size=8), ints, max_size=3)
bounds = st.none() | st.builds(PageBounds, st.booleans(), ints, st.just(5), st.just(2**62), st.just(7))
hashes = st.none() | st.integers(0, 2**256 - 1).map("{:064x}".format)
refs = st.builds(PageRef, ints, page_names, *[ints] * 4, times, st.integers(1, 2**31), *[ints] * 4, bounds, hashes, unknowns)
diverged = st.lists(st.builds(Divergence, ints, ints, ints, st.just("") | topic_ids, ints, unknowns), max_size=2).map(tuple)
marks = st.builds(WriteMark, st.text("abz09._-", max_size=8).map("w".__add__), ids, ints, unknowns)
pending = st.builds(PendingWrite, topics, topic_ids, marks, st.lists(entries, max_size=1).map(tuple), epochs)
manifests = st.builds(
    Manifest,
    *[topics, topic_ids, ints, ints, st.text(max_size=8), st.text(max_size=8), st.text(max_size=8)],
    *[ints, ints, ints],
    by_source,
    epochs,
    st.lists(entries, max_size=3).map(tuple),
    st.lists(gaps, max_size=3).map(tuple),
    st.lists(refs, max_size=3).map(tuple),
    st.lists(st.builds(Deleting, entries | refs, ints, unknowns), max_size=3).map(tuple),
    ints,
    st.none() | marks,
    st.none() | pending,
    by_source,
    by_source,
    st.lists(losses, max_size=2).map(tuple),
    st.booleans(),
    unknowns,
    diverged=diverged,
    kept_from=st.just("") | topic_ids,
)
