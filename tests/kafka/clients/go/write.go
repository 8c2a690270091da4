package main

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

const atOnce = 20
const committed = 7

// What ../python/write.py says of commands.
type writer interface {
	create(topic string, partitions int32)
	write(topic, codec string, chunks <-chan []int) // closes what it needs when there are no more
	transact(topic, id string, numbers []int, group string)
	read(topic, group string, count int) []string
}

func key(number int) []byte   { return []byte(strconv.Itoa(number % 10)) }
func value(number int) []byte { return []byte(strconv.Itoa(number)) }

func line(partition int32, offset int64, key, value []byte) string {
	return fmt.Sprintf("%d %d %s %s\n", partition, offset, key, value)
}

func number(word string) int {
	found, err := strconv.Atoi(word)
	must(err)
	return found
}

func isOver(first int, until string) bool {
	if end, err := strconv.Atoi(until); err == nil {
		return first >= end
	}
	_, err := os.Stat(until)
	return err == nil
}

// One chunk after the other; a chunk is taken when the one before is acknowledged.
func written(client writer, topic, codec string, first int, until string) int {
	chunks, done := make(chan []int), make(chan bool)
	go func() {
		client.write(topic, codec, chunks)
		done <- true
	}()
	for !isOver(first, until) {
		last := first + atOnce
		if end, err := strconv.Atoi(until); err == nil {
			last = min(last, end)
		} else {
			time.Sleep(10 * time.Millisecond)
		}
		chunks <- numbers(first, last)
		first = last
	}
	close(chunks)
	<-done
	return first
}

func numbers(first, last int) []int {
	found := make([]int, 0, last-first)
	for ; first < last; first++ {
		found = append(found, first)
	}
	return found
}

func answered(client writer, words []string) string {
	switch words[0] {
	case "create":
		client.create(words[1], int32(number(words[2])))
	case "write":
		return strconv.Itoa(written(client, words[1], words[2], number(words[3]), words[4]))
	case "transact":
		client.transact(words[1], words[2], numbers(number(words[3]), number(words[4])), words[5])
	case "read":
		lines := client.read(words[1], words[2], number(words[3]))
		slices.Sort(lines)
		return fmt.Sprintf("%d %x", len(lines), sha256.Sum256([]byte(strings.Join(lines, ""))))
	}
	return "ok"
}

func writes(client writer) {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		fmt.Println(answered(client, strings.Fields(lines.Text())))
	}
}
