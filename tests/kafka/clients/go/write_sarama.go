package main

import (
	"context"
	"time"

	"github.com/IBM/sarama"
)

type ofSarama struct{ address string }

var saramaCodecs = map[string]sarama.CompressionCodec{
	"none": sarama.CompressionNone, "gzip": sarama.CompressionGZIP, "snappy": sarama.CompressionSnappy,
	"lz4": sarama.CompressionLZ4, "zstd": sarama.CompressionZSTD,
}

func (s ofSarama) config() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.V4_0_0_0
	config.Net.MaxOpenRequests = 1
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Idempotent = true
	config.Producer.Return.Successes = true
	config.Producer.Retry.Max, config.Producer.Retry.Backoff = 300, 100*time.Millisecond
	config.Metadata.Retry.Max, config.Metadata.Retry.Backoff = 300, 100*time.Millisecond
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.IsolationLevel = sarama.ReadCommitted
	config.Consumer.MaxWaitTime = wait
	return config
}

func (s ofSarama) create(topic string, partitions int32) {
	admin, err := sarama.NewClusterAdmin([]string{s.address}, s.config())
	must(err)
	must(admin.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: partitions, ReplicationFactor: 1}, false))
	must(admin.Close())
}

func messages(topic string, numbers []int, key func(int) []byte) []*sarama.ProducerMessage {
	var found []*sarama.ProducerMessage
	for _, one := range numbers {
		found = append(found, &sarama.ProducerMessage{
			Topic: topic, Key: sarama.ByteEncoder(key(one)), Value: sarama.ByteEncoder(value(one)),
		})
	}
	return found
}

func (s ofSarama) write(topic, codec string, chunks <-chan []int) {
	config := s.config()
	config.Producer.Compression = saramaCodecs[codec]
	producer, err := sarama.NewSyncProducer([]string{s.address}, config)
	must(err)
	for chunk := range chunks {
		must(producer.SendMessages(messages(topic, chunk, key)))
	}
	must(producer.Close())
}

func (s ofSarama) transact(topic, id string, numbers []int, group string) {
	config := s.config()
	config.Producer.Transaction.ID = id
	producer, err := sarama.NewSyncProducer([]string{s.address}, config)
	must(err)
	must(producer.BeginTxn())
	must(producer.SendMessages(messages(topic, numbers, key)))
	offsets := []*sarama.PartitionOffsetMetadata{{Partition: 0, Offset: committed}}
	must(producer.AddOffsetsToTxn(map[string][]*sarama.PartitionOffsetMetadata{topic: offsets}, group))
	must(producer.CommitTxn())
	must(producer.BeginTxn())
	must(producer.SendMessages(messages(topic, numbers, func(int) []byte { return []byte("aborted") })))
	must(producer.AbortTxn())
	must(producer.Close())
}

type member struct {
	count int
	lines chan string
	done  context.CancelFunc
}

func (member) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (member) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (m member) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case one := <-claim.Messages():
			if one == nil {
				return nil
			}
			session.MarkMessage(one, "")
			m.lines <- line(one.Partition, one.Offset, one.Key, one.Value)
			if len(m.lines) == m.count {
				session.Commit()
				m.done()
			}
		case <-session.Context().Done():
			session.Commit()
			return nil
		}
	}
}

func (s ofSarama) read(topic, group string, count int) []string {
	consumer, err := sarama.NewConsumerGroup([]string{s.address}, group, s.config())
	must(err)
	within, cancel := context.WithTimeout(context.Background(), patience)
	of := member{count, make(chan string, count), cancel}
	for within.Err() == nil {
		must(consumer.Consume(within, []string{topic}, of))
	}
	must(consumer.Close())
	close(of.lines)
	var lines []string
	for one := range of.lines {
		lines = append(lines, one)
	}
	return lines
}
