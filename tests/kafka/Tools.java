import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;

import org.apache.kafka.common.utils.Exit;

/**
 * Runs command line tools of Kafka one after the other, in one Java. A line of standard input is a class, the tool's own
 * standard input and its arguments, with tabs between and all but the first in base64; the answer is a line: the exit code, and in
 * base64 what the tool has written.
 */
public class Tools {
    /** Of the tool that runs: the code of its first end, as some catch what ends them, and what it does at its end. */
    static Integer ended;
    static final List<Runnable> HOOKS = new ArrayList<>();

    public static void main(String[] ignored) throws Exception {
        Exit.Procedure ends = (code, message) -> {
            ended = ended == null ? Integer.valueOf(code) : ended;
            throw new IllegalStateException("the tool has ended");
        };
        Exit.setExitProcedure(ends);
        Exit.setHaltProcedure(ends);
        Exit.setShutdownHookAdder((name, hook) -> HOOKS.add(hook));
        PrintStream answers = System.out;
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split("\t");
            ByteArrayOutputStream written = new ByteArrayOutputStream();
            PrintStream to = new PrintStream(written, true, StandardCharsets.UTF_8);
            System.setOut(to);
            System.setErr(to);
            System.setIn(new ByteArrayInputStream(decoded(words[1]).getBytes(StandardCharsets.UTF_8)));
            int code = run(words[0], Arrays.stream(words).skip(2).map(Tools::decoded).toArray(String[]::new), to);
            to.flush();
            answers.println(code + " " + Base64.getEncoder().encodeToString(written.toByteArray()));
            answers.flush();
        }
    }

    static String decoded(String word) {
        return new String(Base64.getDecoder().decode(word), StandardCharsets.UTF_8);
    }

    static int run(String name, String[] arguments, PrintStream to) throws Exception {
        ended = null;
        HOOKS.clear();
        try {
            Class.forName(name).getMethod("main", String[].class).invoke(null, (Object) arguments);
        } catch (InvocationTargetException e) {
            if (ended == null) {
                e.getCause().printStackTrace(to);
                ended = 1;
            }
        }
        HOOKS.forEach(Runnable::run);
        return ended == null ? 0 : ended;
    }
}
