package main

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

type franz struct{ address string }

var codecs = map[string]kgo.CompressionCodec{
	"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
	"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}

func (f franz) client(more ...kgo.Opt) *kgo.Client {
	soon := kgo.RetryBackoffFn(func(int) time.Duration { return 100 * time.Millisecond })
	client, err := kgo.NewClient(append(more, kgo.SeedBrokers(f.address), soon, kgo.FetchMaxWait(wait))...)
	must(err)
	return client
}

func (f franz) create(topic string, partitions int32) {
	client := f.client()
	defer client.Close()
	asked := kmsg.NewPtrCreateTopicsRequest()
	wanted := kmsg.NewCreateTopicsRequestTopic()
	wanted.Topic, wanted.NumPartitions, wanted.ReplicationFactor = topic, partitions, 1
	asked.Topics = append(asked.Topics, wanted)
	answer, err := asked.RequestWith(context.Background(), client)
	must(err)
	must(kerr.ErrorForCode(answer.Topics[0].ErrorCode))
}

func record(topic string, number int) *kgo.Record {
	return &kgo.Record{Topic: topic, Key: key(number), Value: value(number)}
}

func (f franz) write(topic, codec string, chunks <-chan []int) {
	client := f.client(kgo.ProducerBatchCompression(codecs[codec]))
	defer client.Close()
	for chunk := range chunks {
		var records []*kgo.Record
		for _, one := range chunk {
			records = append(records, record(topic, one))
		}
		must(client.ProduceSync(context.Background(), records...).FirstErr())
	}
}

// Without the group, whose offsets it commits only as a member.
func (f franz) transact(topic, id string, numbers []int, _ string) {
	client := f.client(kgo.TransactionalID(id))
	defer client.Close()
	for _, end := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort} {
		must(client.BeginTransaction())
		for _, one := range numbers {
			sent := record(topic, one)
			if end == kgo.TryAbort {
				sent.Key = []byte("aborted")
			}
			client.Produce(context.Background(), sent, func(_ *kgo.Record, err error) { must(err) })
		}
		must(client.Flush(context.Background()))
		must(client.EndTransaction(context.Background(), end))
	}
}

func (f franz) read(topic, group string, count int) []string {
	client := f.client(
		kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
	)
	defer client.Close()
	within, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var lines []string
	for len(lines) < count {
		fetched := client.PollFetches(within)
		must(errors.Join(fetched.Err()))
		for _, one := range fetched.Records() {
			lines = append(lines, line(one.Partition, one.Offset, one.Key, one.Value))
		}
	}
	must(client.CommitUncommittedOffsets(within))
	return lines
}
