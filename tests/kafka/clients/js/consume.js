// Reads partitions with kafkajs, in the way of ../go/main.go. It only knows consumers of groups: each job is a group of its own.
const { createHash } = require("crypto");
const readline = require("readline");
const { Kafka, logLevel } = require("kafkajs");

const PATIENCE_MS = 60_000;

async function consumed(kafka, topic, isolation, from, last) {
  const groupId = `${topic}-${isolation}-${from}`;
  const consumer = kafka.consumer({ groupId, readUncommitted: isolation === "read_uncommitted", maxWaitTimeInMs: 10 });
  const hash = createHash("sha256");
  let count = 0;
  let offset = from;
  if (from.startsWith("@")) {
    const admin = kafka.admin();
    await admin.connect();
    const found = await admin.fetchTopicOffsetsByTimestamp(topic, Number(from.slice(1)));
    offset = found[0].offset;
    await admin.disconnect();
  }
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  await new Promise((resolve, reject) => {
    setTimeout(() => reject(new Error(`${topic}: not read to ${last} in a minute`)), PATIENCE_MS).unref();
    let isOver = false;
    consumer.run({
      autoCommit: false,
      eachMessage: async ({ message }) => {
        if (isOver || BigInt(message.offset) < BigInt(offset)) return;
        hash.update(`${message.offset} ${message.timestamp} `);
        if (message.key) hash.update(message.key);
        if (message.value) hash.update(message.value);
        count += 1;
        if (BigInt(message.offset) >= BigInt(last)) {
          isOver = true;
          resolve();
        }
      },
    });
    consumer.seek({ topic, partition: 0, offset });
  });
  await consumer.disconnect();
  return `${hash.digest("hex")} ${count}`;
}

async function main() {
  const kafka = new Kafka({ brokers: [process.argv[2]], logLevel: logLevel.ERROR });
  for await (const line of readline.createInterface({ input: process.stdin })) {
    console.log(await consumed(kafka, ...line.split(" ")));
  }
}

main().then(() => process.exit(0), (error) => {
  console.error(error);
  process.exit(1);
});
