// Writes and reads with kafkajs, in the way of ../python/write.py.
const { createHash } = require("crypto");
const { existsSync } = require("fs");
const readline = require("readline");
const { Kafka, logLevel, CompressionTypes } = require("kafkajs");

const AT_ONCE = 20;
const COMMITTED = "7";
const CODECS = { none: CompressionTypes.None, gzip: CompressionTypes.GZIP };
const retry = { retries: 100, initialRetryTime: 50, maxRetryTime: 200 };
const kafka = new Kafka({ brokers: [process.argv[2]], logLevel: logLevel.NOTHING, retry });

const record = (number) => ({ key: String(number % 10), value: String(number) });
const numbers = (first, last) => Array.from({ length: last - first }, (_, i) => first + i);

async function create(topic, partitions) {
  const admin = kafka.admin();
  await admin.connect();
  await admin.createTopics({ topics: [{ topic, numPartitions: Number(partitions) }] });
  await admin.disconnect();
  return "ok";
}

async function write(topic, codec, from, until) {
  const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1 });
  await producer.connect();
  const end = /^\d+$/.test(until) ? Number(until) : null;
  let first = Number(from);
  while (end === null ? !existsSync(until) : first < end) {
    const last = end === null ? first + AT_ONCE : Math.min(first + AT_ONCE, end);
    await producer.send({ topic, acks: -1, compression: CODECS[codec], messages: numbers(first, last).map(record) });
    first = last;
    if (end === null) await new Promise((resolve) => setTimeout(resolve, 10));
  }
  await producer.disconnect();
  return first;
}

async function transact(topic, id, first, until, group) {
  const producer = kafka.producer({ transactionalId: id, idempotent: true, maxInFlightRequests: 1 });
  await producer.connect();
  const all = numbers(Number(first), Number(until));
  const committed = await producer.transaction();
  await committed.send({ topic, messages: all.map(record) });
  const topics = [{ topic, partitions: [{ partition: 0, offset: COMMITTED }] }];
  await committed.sendOffsets({ consumerGroupId: group, topics });
  await committed.commit();
  const aborted = await producer.transaction();
  await aborted.send({ topic, messages: all.map((number) => ({ key: "aborted", value: String(number) })) });
  await aborted.abort();
  await producer.disconnect();
  return "ok";
}

async function read(topic, groupId, count) {
  const consumer = kafka.consumer({ groupId, maxWaitTimeInMs: 10 });
  const lines = [];
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  const next = {};
  await new Promise((resolve) => {
    consumer.run({
      autoCommit: false,
      eachMessage: async ({ partition, message }) => {
        lines.push(`${partition} ${message.offset} ${message.key} ${message.value}\n`);
        next[partition] = String(BigInt(message.offset) + 1n);
        if (lines.length === Number(count)) resolve();
      },
    });
  });
  await consumer.commitOffsets(Object.entries(next).map(([partition, offset]) => ({ topic, partition: Number(partition), offset })));
  await consumer.disconnect();
  return `${lines.length} ${createHash("sha256").update(lines.sort().join("")).digest("hex")}`;
}

const commands = { create, write, transact, read };

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [command, ...words] = line.split(" ");
    console.log(await commands[command](...words));
  }
}

main().then(() => process.exit(0), (error) => {
  console.error(error);
  process.exit(1);
});
