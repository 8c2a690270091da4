"""The data source as a stream: options, offsets, plan of a micro-batch, reader."""
