import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.util.Base64;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.Readable;

/** What Kafka's own classes read in a message: a line NAME VERSION BYTES in, a line of its JSON and of its bytes written anew out. */
public class Messages {
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
        try {
            short version = Short.parseShort(w[1]);
            Class<?> of = named(w[0]);
            ByteBuffer given = ByteBuffer.wrap(Base64.getDecoder().decode(w[2]));
            Object message = of.getConstructor(Readable.class, short.class).newInstance(new ByteBufferAccessor(given), version);
            Object json = Class.forName(of.getName() + "JsonConverter")
                .getMethod("write", of, short.class, boolean.class).invoke(null, message, version, false);
            ObjectSerializationCache sizes = new ObjectSerializationCache();
            byte[] data = new byte[((Message) message).size(sizes, version)];
            ((Message) message).write(new ByteBufferAccessor(ByteBuffer.wrap(data)), sizes, version);
            return "ok " + given.remaining() + " " + text(json.toString().getBytes("UTF-8")) + " " + text(data);
        } catch (Throwable e) {
            return "refused " + (e.getCause() == null ? e : e.getCause()).toString().replace('\n', ' ');
        }
    }

    private static Class<?> named(String name) throws ClassNotFoundException {
        if (name.startsWith("ConsumerProtocol"))
            return Class.forName("org.apache.kafka.common.message." + name);
        if (!name.endsWith("Key") && !name.endsWith("Value"))
            return Class.forName("org.apache.kafka.common.message." + name + "Data");
        String of = name.startsWith("TransactionLog") ? "transaction" : "group";
        return Class.forName("org.apache.kafka.coordinator." + of + ".generated." + name);
    }

    private static String text(byte[] data) {
        return Base64.getEncoder().encodeToString(data);
    }
}
