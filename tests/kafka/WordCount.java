import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.CloseOptions;
import org.apache.kafka.streams.CloseOptions.GroupMembershipOperation;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.processor.StateRestoreListener;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * Kafka Streams counts the words of the topic "lines" into the topic "counts", exactly once, each word of each line told. Its
 * argument is a broker. A line of standard input is "start", a folder for the state and the protocol of the group, answered when it
 * runs; or "stop", answered when it has ended, with how many records it has restored and what made it fail, or "-".
 */
public class WordCount {
    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        KafkaStreams streams = null;
        AtomicLong restored = new AtomicLong();
        AtomicReference<String> failure = new AtomicReference<>("-");
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            if (words[0].equals("start")) {
                restored.set(0);
                streams = started(arguments[0], words[1], words[2], restored, failure);
                System.out.println(failure.get().equals("-") ? streams.state() : failure.get());
            } else {
                streams.close(CloseOptions.timeout(Duration.ofSeconds(30)).withGroupMembershipOperation(GroupMembershipOperation.LEAVE_GROUP));
                System.out.println(restored.get() + " " + failure.get());
            }
        }
    }

    static KafkaStreams started(String broker, String folder, String protocol, AtomicLong restored, AtomicReference<String> failure)
        throws InterruptedException {
        Properties config = new Properties();
        config.putAll(Map.of(
            StreamsConfig.APPLICATION_ID_CONFIG, "word-count", StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, broker,
            StreamsConfig.STATE_DIR_CONFIG, folder, StreamsConfig.GROUP_PROTOCOL_CONFIG, protocol,
            StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2,
            StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0, StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2,
            StreamsConfig.consumerPrefix("auto.offset.reset"), "earliest"));
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, String> read = builder.stream("lines", Consumed.with(Serdes.String(), Serdes.String()));
        read.flatMapValues(value -> Arrays.asList(value.split(" ")))
            .groupBy((key, word) -> word, Grouped.with("words", Serdes.String(), Serdes.String()))
            .count(Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as("counted"))
            .toStream().mapValues(String::valueOf)
            .to("counts", Produced.with(Serdes.String(), Serdes.String()));
        KafkaStreams streams = new KafkaStreams(builder.build(), config);
        CountDownLatch runs = new CountDownLatch(1);
        streams.setStateListener((now, before) -> {
            if (now == KafkaStreams.State.RUNNING || now == KafkaStreams.State.ERROR) {
                runs.countDown();
            }
        });
        streams.setUncaughtExceptionHandler(e -> {
            failure.set(String.valueOf(e).replace('\n', ' '));
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        streams.setGlobalStateRestoreListener(new StateRestoreListener() {
            @Override
            public void onRestoreStart(TopicPartition partition, String store, long start, long end) {}

            @Override
            public void onBatchRestored(TopicPartition partition, String store, long end, long count) {
                restored.addAndGet(count);
            }

            @Override
            public void onRestoreEnd(TopicPartition partition, String store, long count) {}
        });
        streams.start();
        runs.await(60, TimeUnit.SECONDS);
        return streams;
    }
}
