import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Kafka's own consumer: for a line "TOPIC END" it reads partition 0 from its start, and answers how many records are below END.
 * With the PEM file of an authority behind the address it reads over TLS.
 */
public class ReadBack {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        PrintStream out = System.out;
        System.setOut(System.err);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            out.println(read(args, new TopicPartition(words[0], 0), Long.parseLong(words[1])));
            out.flush();
        }
    }

    /** With larger fetches and buffers than by default, which it is faster with; CRCs are checked, as by default. */
    private static long read(String[] server, TopicPartition partition, long end) {
        Map<String, Object> config = new HashMap<>(Map.of("bootstrap.servers", server[0], "enable.auto.commit", false,
            "max.partition.fetch.bytes", 10 << 20, "receive.buffer.bytes", 2 << 20, "max.poll.records", 10_000));
        if (server.length > 1)
            config.putAll(Map.of("security.protocol", "SSL", "ssl.truststore.type", "PEM", "ssl.truststore.location", server[1]));
        long records = 0;
        try (KafkaConsumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.assign(List.of(partition));
            consumer.seek(partition, 0);
            while (consumer.position(partition) < end) {
                ConsumerRecords<byte[], byte[]> found = consumer.poll(Duration.ofSeconds(60));
                if (found.isEmpty())
                    break;
                for (ConsumerRecord<byte[], byte[]> record : found)
                    records += record.offset() < end ? 1 : 0;
            }
        }
        return records;
    }
}
