import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.StringJoiner;
import java.util.TreeSet;
import javax.security.auth.x500.X500Principal;
import kafka.server.KafkaConfig;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.ByteBufferOutputStream;
import org.apache.kafka.common.utils.PrimitiveRef;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.log.remote.storage.RemoteStorageMetrics;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogValidator;
import org.apache.kafka.storage.internals.log.RecordValidationException;

/** Kafka's own classes, asked by tests: a line of words in, a line of words out. Bytes are base64, "-" is null. */
public class Judge {
    /** A clock that stands still. */
    private static Time stopped(long now) {
        return (Time) Proxy.newProxyInstance(Judge.class.getClassLoader(), new Class<?>[] {Time.class},
            (proxy, method, args) -> method.getName().equals("milliseconds") ? (Object) now : method.invoke(Time.SYSTEM, args));
    }

    private static final LogValidator.MetricsRecorder NOBODY = new LogValidator.MetricsRecorder() {
        public void recordInvalidMagic() { }
        public void recordInvalidOffset() { }
        public void recordInvalidSequence() { }
        public void recordInvalidChecksums() { }
        public void recordNoKeyCompactedTopic() { }
    };

    private static final Map<String, String> LEAST_BROKER = Map.of("process.roles", "broker", "node.id", "1",
        "controller.quorum.voters", "2@localhost:9093", "controller.listener.names", "CONTROLLER");

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        PrintStream out = System.out;
        System.setOut(System.err);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(answer(line.split(" ", -1)));
            out.flush();
        }
    }

    private static String answer(String[] words) {
        try {
            switch (words[0]) {
                case "compress":
                    return "ok " + text(compressed(compression(words[1], words[2]), bytes(words[3])));
                case "marker":
                    return "ok " + text(marker(words));
                case "messages":
                    return "ok " + text(messages(words));
                case "principal":
                    return "ok " + text(utf8(principal(new String(bytes(words[1]), StandardCharsets.UTF_8), bytes(words[2]))));
                case "properties":
                    return "ok " + properties(bytes(words[1]));
                case "remote-metrics":
                    return "ok " + remoteMetrics();
                case "setting":
                    return "ok " + setting(words);
                case "read":
                    return "ok " + read(bytes(words[1]));
                case "validate":
                    return validated(words);
                default:
                    return "unknown";
            }
        } catch (RecordValidationException e) {
            StringJoiner rows = new StringJoiner(",");
            e.recordErrors().forEach(error -> rows.add(String.valueOf(error.batchIndex)));
            return "refused " + Errors.forException(e.invalidException()).code() + " " + rows;
        } catch (Throwable e) {
            return "refused " + Errors.forException(e).code() + " - " + e.toString().replace('\n', ' ');
        }
    }

    /** The pairs that Kafka's way to read a file of properties finds, sorted, with commas between all texts. */
    private static String properties(byte[] file) throws Exception {
        Properties found = new Properties();
        found.load(new ByteArrayInputStream(file));
        StringJoiner all = new StringJoiner(",");
        for (String name : new TreeSet<>(found.stringPropertyNames()))
            all.add(text(utf8(name))).add(text(utf8(found.getProperty(name))));
        return all.toString();
    }

    /** The name that rules make of a subject, which is in DER, where it begins with a sequence, or text. */
    private static String principal(String rules, byte[] subject) throws Exception {
        boolean isDer = subject[0] == 0x30;
        String name = isDer ? new X500Principal(subject).getName() : new String(subject, StandardCharsets.UTF_8);
        return SslPrincipalMapper.fromRules(rules).getName(name);
    }

    /** The names of all metrics of tiered storage, sorted. */
    private static String remoteMetrics() {
        TreeSet<String> names = new TreeSet<>();
        RemoteStorageMetrics.allMetrics().forEach(metric -> names.add(metric.getName()));
        return String.join(" ", names);
    }

    /** setting WHOSE NAME [VALUE], of a topic or a broker: what it is by that, or else by default; refused if Kafka has no such. */
    private static String setting(String[] w) {
        Map<String, String> given = w.length == 3 ? Map.of() : Map.of(w[2], new String(bytes(w[3]), StandardCharsets.UTF_8));
        Map<String, ?> all = w[1].equals("topic") ? LogConfig.configDefCopy().parse(given) : ofBroker(given);
        if (!all.containsKey(w[2]))
            throw new ConfigException("no setting of a " + w[1] + ": " + w[2]);
        return text(utf8(String.valueOf(all.get(w[2]))));
    }

    /** The settings of the least broker that has these: each within its own bounds, and all of them together. */
    private static Map<String, ?> ofBroker(Map<String, String> given) {
        Map<String, String> all = new HashMap<>(LEAST_BROKER);
        all.putAll(given);
        return new KafkaConfig(all, false).values();
    }

    private static ByteBuffer utf8(String text) {
        return ByteBuffer.wrap(text.getBytes(StandardCharsets.UTF_8));
    }

    /** validate FIRST_OFFSET NOW SOURCE TARGET LEVEL COMPACTED TIMESTAMP_TYPE BEFORE AFTER EPOCH ORIGIN RECORDS */
    private static String validated(String[] w) {
        PrimitiveRef.LongRef offset = PrimitiveRef.ofLong(Long.parseLong(w[1]));
        LogValidator.ValidationResult result = new LogValidator(
            MemoryRecords.readableRecords(ByteBuffer.wrap(bytes(w[12]))), new TopicPartition("t", 0), stopped(Long.parseLong(w[2])),
            CompressionType.forName(w[3]), compression(w[4], w[5]), Boolean.parseBoolean(w[6]), RecordBatch.CURRENT_MAGIC_VALUE,
            TimestampType.valueOf(w[7]), Long.parseLong(w[8]), Long.parseLong(w[9]), Integer.parseInt(w[10]), AppendOrigin.valueOf(w[11])
        ).validateMessagesAndAssignOffsets(offset, NOBODY, BufferSupplier.NO_CACHING);
        return "ok " + text(result.validatedRecords().buffer()) + " " + result.maxTimestampMs() + " " + (offset.value - 1) + " "
            + result.messageSizeMaybeChanged() + " " + result.recordValidationStats().temporaryMemoryBytes() + " "
            + result.recordValidationStats().numRecordsConverted();
    }

    /** messages MAGIC CODEC TIMESTAMP_TYPE APPEND_TIME ROW..., of a row offset, timestamp, key and value, apart by commas. */
    private static ByteBuffer messages(String[] w) {
        long first = Long.parseLong(w[5].split(",")[0]);
        MemoryRecordsBuilder builder = MemoryRecords.builder(ByteBuffer.allocate(1024), Byte.parseByte(w[1]),
            compression(w[2], "-"), TimestampType.valueOf(w[3]), first, Long.parseLong(w[4]));
        for (int i = 5; i < w.length; i++) {
            String[] row = w[i].split(",", -1);
            byte[] key = row[2].equals("-") ? null : bytes(row[2]);
            byte[] value = row[3].equals("-") ? null : bytes(row[3]);
            builder.appendWithOffset(Long.parseLong(row[0]), Long.parseLong(row[1]), key, value);
        }
        return builder.build().buffer();
    }

    /** marker OFFSET TIMESTAMP LEADER_EPOCH PRODUCER_ID PRODUCER_EPOCH TYPE COORDINATOR_EPOCH */
    private static ByteBuffer marker(String[] w) {
        EndTransactionMarker marker = new EndTransactionMarker(ControlRecordType.valueOf(w[6]), Integer.parseInt(w[7]));
        return MemoryRecords.withEndTransactionMarker(Long.parseLong(w[1]), Long.parseLong(w[2]), Integer.parseInt(w[3]),
            Long.parseLong(w[4]), Short.parseShort(w[5]), marker).buffer();
    }

    /** The records of all batches, their fields apart by commas. */
    private static String read(byte[] data) {
        List<String> rows = new ArrayList<>();
        for (RecordBatch batch : MemoryRecords.readableRecords(ByteBuffer.wrap(data)).batches()) {
            batch.ensureValid();
            for (Record record : batch) {
                StringJoiner row = new StringJoiner(",");
                row.add(String.valueOf(record.offset())).add(String.valueOf(record.timestamp())).add(String.valueOf(record.sequence()));
                row.add(text(record.key())).add(text(record.value()));
                for (Header header : record.headers())
                    row.add(text(ByteBuffer.wrap(header.key().getBytes(StandardCharsets.UTF_8))))
                        .add(header.value() == null ? "-" : text(ByteBuffer.wrap(header.value())));
                rows.add(row.toString());
            }
        }
        return String.join(" ", rows);
    }

    private static ByteBuffer compressed(Compression compression, byte[] data) throws Exception {
        ByteBufferOutputStream made = new ByteBufferOutputStream(1024);
        try (OutputStream out = compression.wrapForOutput(made, RecordBatch.CURRENT_MAGIC_VALUE)) {
            out.write(data);
        }
        return (ByteBuffer) made.buffer().flip();
    }

    private static Compression compression(String name, String level) {
        if (level.equals("-"))
            return Compression.of(name).build();
        switch (CompressionType.forName(name)) {
            case GZIP:
                return Compression.gzip().level(Integer.parseInt(level)).build();
            case LZ4:
                return Compression.lz4().level(Integer.parseInt(level)).build();
            case ZSTD:
                return Compression.zstd().level(Integer.parseInt(level)).build();
            default:
                throw new IllegalArgumentException(name + " has no levels");
        }
    }

    private static byte[] bytes(String word) {
        return Base64.getDecoder().decode(word);
    }

    private static String text(ByteBuffer buffer) {
        if (buffer == null)
            return "-";
        byte[] data = new byte[buffer.remaining()];
        buffer.duplicate().get(data);
        return Base64.getEncoder().encodeToString(data);
    }
}
