"""`meta.properties` of a log directory, as `kafka-storage format` writes it: cluster id, node id and the directory's own id.

A broker starts only on a directory with its cluster's id and its own node id. Source: Kafka's MetaProperties, version 1.
"""


def write_meta_properties(cluster_id: str, node_id: str, directory_id: str) -> bytes:
    """The bytes of the file."""
    return f"#\nversion=1\ncluster.id={cluster_id}\nnode.id={node_id}\ndirectory.id={directory_id}\n".encode()
