import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.security.MessageDigest;
import java.time.Duration;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.StringJoiner;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Kafka's own clients, asked a line at a time about partition 0 of topics.
 *   consume TOPIC ISOLATION [FROM]   the offsets of all records, or of those from an offset or @ and a time on, and the SHA-256 of
 *                             their timestamps, keys and values
 *   together TOPIC TOPIC ...  how many records one consumer is given of each, a few at a time
 *   time TOPIC MS             the offset and the timestamp that a consumer is told for a time
 *   broker TOPIC              how many settings the broker has, fetch.max.bytes with type and source, how many log directories, the
 *                             bytes of the topic's log there, and the ids of its producers
 *   describe TOPIC            the topic's id, its number of partitions, the nodes, its settings and its largest timestamp's offset
 */
public class ConsumeAll {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        PrintStream out = System.out;
        System.setOut(System.err);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            TopicPartition partition = new TopicPartition(words[1], 0);
            out.println(words[0].equals("together") ? together(args[0], List.of(words).subList(1, words.length))
                : words[0].equals("broker") ? broker(args[0], partition)
                : words[0].equals("describe") ? describe(args[0], partition)
                : words[0].equals("time") ? time(args[0], partition, Long.parseLong(words[2]))
                : consume(args[0], partition, words[2], words.length > 3 ? words[3] : ""));
            out.flush();
        }
    }

    private static KafkaConsumer<byte[], byte[]> consumer(String address, String isolation) {
        return consumer(address, isolation, 1 << 20);
    }

    private static KafkaConsumer<byte[], byte[]> consumer(String address, String isolation, int maxBytes) {
        Map<String, Object> config = Map.of("bootstrap.servers", address, "enable.auto.commit", false, "isolation.level", isolation,
            "auto.offset.reset", "none", "fetch.max.wait.ms", 10, "max.partition.fetch.bytes", maxBytes);
        return new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    private static String consume(String address, TopicPartition partition, String isolation, String from) throws Exception {
        StringJoiner offsets = new StringJoiner(" ");
        MessageDigest digest = MessageDigest.getInstance("SHA-256");
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(address, isolation)) {
            consumer.assign(List.of(partition));
            consumer.seek(partition, from.isEmpty() ? consumer.beginningOffsets(List.of(partition)).get(partition)
                : from.startsWith("@") ? consumer.offsetsForTimes(Map.of(partition, Long.parseLong(from.substring(1)))).get(partition).offset()
                : Long.parseLong(from));
            long end = consumer.endOffsets(List.of(partition)).get(partition);
            while (consumer.position(partition) < end) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofSeconds(30))) {
                    offsets.add(Long.toString(record.offset()));
                    digest.update((record.timestamp() + " ").getBytes());
                    digest.update(record.key() == null ? new byte[0] : record.key());
                    digest.update(record.value() == null ? new byte[0] : record.value());
                }
            }
        }
        return HexFormat.of().formatHex(digest.digest()) + " " + offsets;
    }

    private static String together(String address, List<String> topics) {
        List<TopicPartition> partitions = topics.stream().map(topic -> new TopicPartition(topic, 0)).toList();
        Map<String, Integer> counts = new HashMap<>();
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(address, "read_uncommitted", 10_000)) {
            consumer.assign(partitions);
            consumer.beginningOffsets(partitions).forEach((partition, offset) -> consumer.seek(partition, offset));
            Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
            while (partitions.stream().anyMatch(partition -> consumer.position(partition) < ends.get(partition))) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofSeconds(30))) {
                    counts.merge(record.topic(), 1, Integer::sum);
                }
            }
        }
        return String.join(" ", topics.stream().map(topic -> Integer.toString(counts.getOrDefault(topic, 0))).toList());
    }

    private static String time(String address, TopicPartition partition, long timestamp) {
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(address, "read_uncommitted")) {
            OffsetAndTimestamp found = consumer.offsetsForTimes(Map.of(partition, timestamp)).get(partition);
            return found == null ? "none" : found.offset() + " " + found.timestamp();
        }
    }

    private static String describe(String address, TopicPartition partition) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", address))) {
            var topic = admin.describeTopics(List.of(partition.topic())).allTopicNames().get().get(partition.topic());
            int nodes = admin.describeCluster().nodes().get().size();
            ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, partition.topic());
            int settings = admin.describeConfigs(List.of(resource)).all().get().get(resource).entries().size();
            long latest = admin.listOffsets(Map.of(partition, OffsetSpec.maxTimestamp())).all().get().get(partition).offset();
            return topic.topicId() + " " + topic.partitions().size() + " " + nodes + " " + settings + " " + latest;
        }
    }

    private static String broker(String address, TopicPartition partition) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", address))) {
            ConfigResource resource = new ConfigResource(ConfigResource.Type.BROKER, "1");
            var settings = admin.describeConfigs(List.of(resource)).all().get().get(resource);
            var bytes = settings.get("fetch.max.bytes");
            var logDirs = admin.describeLogDirs(List.of(1)).allDescriptions().get().get(1);
            long size = logDirs.values().stream().mapToLong(dir -> dir.replicaInfos().get(partition).size()).sum();
            var producers = admin.describeProducers(List.of(partition)).partitionResult(partition).get().activeProducers();
            StringJoiner ids = new StringJoiner(" ");
            producers.forEach(producer -> ids.add(Long.toString(producer.producerId())));
            return settings.entries().size() + " " + bytes.value() + " " + bytes.type() + " " + bytes.source() + " "
                + logDirs.size() + " " + size + " " + ids;
        }
    }
}
