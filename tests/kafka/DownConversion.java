import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.util.Base64;
import java.util.Iterator;
import java.util.StringJoiner;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.ConvertedRecords;
import org.apache.kafka.common.record.LazyDownConversionRecords;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.utils.Time;

/** What a broker of Kafka 3.9 sends to clients before 0.11: a line MAGIC FIRST_OFFSET BYTES_MAX BATCHES in, a line of its parts out. */
public class DownConversion {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        PrintStream out = System.out;
        System.setOut(System.err);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(answer(line.split(" ", -1)));
            out.flush();
        }
    }

    private static String answer(String[] w) {
        StringJoiner parts = new StringJoiner(" ");
        try {
            MemoryRecords stored = MemoryRecords.readableRecords(ByteBuffer.wrap(Base64.getDecoder().decode(w[3])));
            LazyDownConversionRecords lazy = new LazyDownConversionRecords(
                new TopicPartition("t", 0), stored, Byte.parseByte(w[0]), Long.parseLong(w[1]), Time.SYSTEM);
            Iterator<ConvertedRecords<?>> converted = lazy.iterator(Long.parseLong(w[2]));
            while (converted.hasNext())
                parts.add(text(((MemoryRecords) converted.next().records()).buffer()));
            return "ok " + parts;
        } catch (Throwable e) {
            return "refused " + Errors.forException(e).code() + " " + parts;
        }
    }

    private static String text(ByteBuffer buffer) {
        byte[] data = new byte[buffer.remaining()];
        buffer.duplicate().get(data);
        return Base64.getEncoder().encodeToString(data);
    }
}
