import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.FutureTask;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.tools.ProducerPerformance;

/**
 * Kafka's own ProducerPerformance, several at once: for a line "COUNT ARGUMENTS" it runs COUNT of them with these arguments, and
 * answers how many ms that took, how many records were acknowledged, and the highest 99th percentile of their latencies in ms.
 */
public class ProduceTogether {
    private static final Pattern TOTAL = Pattern.compile("(\\d+) records sent, .* (\\d+) ms 99th");

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        PrintStream out = System.out;
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ", 2);
            out.println(answer(Integer.parseInt(words[0]), words[1].split(" ")));
            out.flush();
        }
    }

    private static String answer(int count, String[] arguments) throws Exception {
        ByteArrayOutputStream said = new ByteArrayOutputStream();
        System.setOut(new PrintStream(said, true));
        List<FutureTask<Void>> running = new ArrayList<>();
        long began = System.nanoTime();
        for (int i = 0; i < count; i++) {
            FutureTask<Void> one = new FutureTask<>(() -> {
                ProducerPerformance.main(arguments);
                return null;
            });
            new Thread(one).start();
            running.add(one);
        }
        for (FutureTask<Void> one : running)
            one.get();
        long ms = (System.nanoTime() - began) / 1_000_000, records = 0, p99 = 0;
        for (Matcher total = TOTAL.matcher(said.toString()); total.find(); ) {
            records += Long.parseLong(total.group(1));
            p99 = Math.max(p99, Long.parseLong(total.group(2)));
        }
        return ms + " " + records + " " + p99;
    }
}
