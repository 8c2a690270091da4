// Reads partitions with Go's two clients of Kafka. Each line of standard input is a topic, an isolation level, where to begin (an
// offset, or @ and a timestamp) and the offset of the last record; the answer is a digest of the records and how many they are.
//
//	clients franz|sarama:VERSION ADDRESS
//
// With write-franz and write-sarama it writes, too: see write.go.
package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"log"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kgo"
)

const patience = 60 * time.Second
const wait = 10 * time.Millisecond

type job struct {
	topic     string
	committed bool
	from      string
	last      int64
}

func (j job) isTime() bool { return strings.HasPrefix(j.from, "@") }

func (j job) number() int64 {
	found, err := strconv.ParseInt(strings.TrimPrefix(j.from, "@"), 10, 64)
	must(err)
	return found
}

type digest struct {
	hash  hash.Hash
	count int
}

func (d *digest) add(offset, timestamp int64, key, value []byte) {
	fmt.Fprintf(d.hash, "%d %d ", offset, timestamp)
	d.hash.Write(key)
	d.hash.Write(value)
	d.count++
}

func (d *digest) String() string { return fmt.Sprintf("%x %d", d.hash.Sum(nil), d.count) }

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	client, version, _ := strings.Cut(os.Args[1], ":")
	switch client {
	case "write-franz":
		writes(franz{os.Args[2]})
		return
	case "write-sarama":
		writes(ofSarama{os.Args[2]})
		return
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		last, err := strconv.ParseInt(words[3], 10, 64)
		must(err)
		asked := job{words[0], words[1] == "read_committed", words[2], last}
		read := &digest{hash: sha256.New()}
		if client == "franz" {
			withFranz(os.Args[2], asked, read)
		} else {
			withSarama(os.Args[2], version, asked, read)
		}
		fmt.Println(read)
	}
}

func withFranz(address string, asked job, read *digest) {
	start := kgo.NewOffset().At(asked.number())
	if asked.isTime() {
		start = kgo.NewOffset().AfterMilli(asked.number())
	}
	isolation := kgo.ReadUncommitted()
	if asked.committed {
		isolation = kgo.ReadCommitted()
	}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(address),
		kgo.FetchIsolationLevel(isolation),
		kgo.FetchMaxWait(wait),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{asked.topic: {0: start}}),
	)
	must(err)
	defer client.Close()
	within, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		fetched := client.PollFetches(within)
		for _, failed := range fetched.Errors() {
			must(failed.Err)
		}
		for _, record := range fetched.Records() {
			read.add(record.Offset, record.Timestamp.UnixMilli(), record.Key, record.Value)
			if record.Offset >= asked.last {
				return
			}
		}
	}
}

var saramas = map[bool]sarama.Client{}

func saramaClient(address, version string, committed bool) sarama.Client {
	if client, known := saramas[committed]; known {
		return client
	}
	config := sarama.NewConfig()
	var err error
	config.Version, err = sarama.ParseKafkaVersion(version)
	must(err)
	if committed {
		config.Consumer.IsolationLevel = sarama.ReadCommitted
	}
	config.Consumer.Return.Errors = true
	config.Consumer.MaxWaitTime = wait
	saramas[committed], err = sarama.NewClient([]string{address}, config)
	must(err)
	return saramas[committed]
}

func withSarama(address, version string, asked job, read *digest) {
	client := saramaClient(address, version, asked.committed)
	var err error
	start := asked.number()
	if asked.isTime() {
		start, err = client.GetOffset(asked.topic, 0, start)
		must(err)
	}
	consumer, err := sarama.NewConsumerFromClient(client)
	must(err)
	partition, err := consumer.ConsumePartition(asked.topic, 0, start)
	must(err)
	defer partition.AsyncClose()
	for {
		select {
		case record := <-partition.Messages():
			read.add(record.Offset, record.Timestamp.UnixMilli(), record.Key, record.Value)
			if record.Offset >= asked.last {
				return
			}
		case failed := <-partition.Errors():
			must(failed)
		case <-time.After(patience):
			log.Fatalf("%s: no record for a minute", asked.topic)
		}
	}
}
