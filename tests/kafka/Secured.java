import java.io.BufferedReader;
import java.io.FileReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Proxy;
import java.net.InetAddress;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ScramCredentialInfo;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.UserScramCredentialUpsertion;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.metrics.QuotaViolationException;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;
import org.apache.kafka.common.metrics.stats.Rate;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.quota.ClientQuotaFilter;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.utils.SecurityUtils;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.quota.QuotaUtils;

/**
 * Kafka's own clients on listeners that ask who they are, and Kafka's own authorizer, asked a line at a time. FILE is a client's
 * properties; an ACL is TYPE NAME PATTERN PRINCIPAL HOST OPERATION PERMISSION.
 *   topics FILE                                      the names of all topics, or the error
 *   read FILE TOPIC OFFSET                           the offset of the record that is read there, or the error
 *   go-on FILE TOPIC OFFSET MS                       the same again and again for a time: how often it authenticated, or the error
 *   create FILE ACL                                  creates an ACL
 *   acls FILE                                        how many ACLs there are
 *   authorizer SUPER_USERS ALLOW_EVERYONE            a new authorizer without ACLs
 *   acl ACL                                          adds an ACL to it
 *   may PRINCIPAL HOST OPERATION TYPE NAME           what it decides
 *   quota BYTES_A_SECOND                             a new quota of a client
 *   record BYTES MS                                  for how long the client is throttled; nothing is recorded then
 */
public class Secured {
    private static StandardAuthorizer authorizer;
    private static Sensor sensor;

    public static void main(String[] args) throws Exception {
        System.setProperty("org.apache.kafka.sasl.oauthbearer.allowed.urls", args[0]);
        System.setProperty("org.apache.kafka.sasl.oauthbearer.allowed.files", args[0].substring("file:".length()));
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        PrintStream out = System.out;
        System.setOut(System.err);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String answer;
            try {
                answer = answer(line.split(" "));
            } catch (Throwable e) {
                while (e.getCause() != null && !e.getClass().getName().startsWith("org.apache.kafka.common.errors")) {
                    e = e.getCause();
                }
                answer = e.getClass().getSimpleName() + " " + String.valueOf(e.getMessage()).replace('\n', ' ');
            }
            out.println(answer);
            out.flush();
        }
    }

    private static String answer(String[] w) throws Exception {
        switch (w[0]) {
            case "topics":
                try (Admin admin = Admin.create(properties(w[1]))) {
                    return String.join(" ", new TreeSet<>(admin.listTopics().names().get()));
                }
            case "read":
                return read(properties(w[1]), new TopicPartition(w[2], 0), Long.parseLong(w[3]));
            case "go-on":
                return goOn(properties(w[1]), new TopicPartition(w[2], 0), Long.parseLong(w[3]), Long.parseLong(w[4]));
            case "create":
                try (Admin admin = Admin.create(properties(w[1]))) {
                    admin.createAcls(List.of(binding(w, 2))).all().get();
                    return "created";
                }
            case "acls":
                try (Admin admin = Admin.create(properties(w[1]))) {
                    Collection<AclBinding> found = admin.describeAcls(AclBindingFilter.ANY).values().get();
                    return Integer.toString(found.size());
                }
            case "set-user":
                ScramCredentialInfo hashed = new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096);
                try (Admin admin = Admin.create(properties(w[1]))) {
                    admin.alterUserScramCredentials(List.of(new UserScramCredentialUpsertion(w[2], hashed, w[3]))).all().get();
                    return "set";
                }
            case "users":
                try (Admin admin = Admin.create(properties(w[1]))) {
                    return String.join(" ", new TreeSet<>(admin.describeUserScramCredentials().all().get().keySet()));
                }
            case "set-quota":
                ClientQuotaEntity entity = new ClientQuotaEntity(Map.of(ClientQuotaEntity.USER, w[2]));
                ClientQuotaAlteration.Op op = new ClientQuotaAlteration.Op("consumer_byte_rate", Double.valueOf(w[3]));
                try (Admin admin = Admin.create(properties(w[1]))) {
                    admin.alterClientQuotas(List.of(new ClientQuotaAlteration(entity, List.of(op)))).all().get();
                    return "set";
                }
            case "quotas":
                ClientQuotaFilter all = ClientQuotaFilter.all();
                try (Admin admin = Admin.create(properties(w[1]))) {
                    return admin.describeClientQuotas(all).entities().get().entrySet().stream()
                        .map(one -> one.getKey().entries() + "=" + one.getValue()).sorted().collect(Collectors.joining(" "));
                }
            case "authorizer":
                authorizer = new StandardAuthorizer();
                authorizer.configure(Map.of("super.users", w[1], "allow.everyone.if.no.acl.found", w[2], "node.id", "1"));
                authorizer.withPluginMetrics(new PluginMetricsImpl(new Metrics(), Map.of()));
                authorizer.completeInitialLoad();
                return "new";
            case "acl":
                authorizer.addAcl(Uuid.randomUuid(), StandardAcl.fromAclBinding(binding(w, 1)));
                return "added";
            case "may":
                ResourcePattern resource = new ResourcePattern(ResourceType.valueOf(w[4]), w[5], PatternType.LITERAL);
                Action action = new Action(AclOperation.valueOf(w[3]), resource, 1, false, false);
                return authorizer.authorize(client(w[1], InetAddress.getByName(w[2])), List.of(action)).get(0).name();
            case "quota":
                MetricConfig config = new MetricConfig().timeWindow(1, TimeUnit.SECONDS).samples(11);
                Metrics metrics = new Metrics();
                sensor = metrics.sensor("fetch", config.quota(new Quota(Double.parseDouble(w[1]), true)));
                sensor.add(metrics.metricName("rate", "fetch"), new Rate());
                return "new";
            case "record":
                double value = Double.parseDouble(w[1]);
                long now = Long.parseLong(w[2]);
                try {
                    sensor.record(value, now, true);
                    return "0";
                } catch (QuotaViolationException e) {
                    sensor.record(-value, now, false);
                    return Long.toString(QuotaUtils.throttleTime(e, now));
                }
            default:
                throw new IllegalArgumentException(w[0]);
        }
    }

    private static Properties properties(String file) throws Exception {
        Properties found = new Properties();
        try (FileReader reader = new FileReader(file)) {
            found.load(reader);
        }
        return found;
    }

    private static String read(Properties config, TopicPartition partition, long offset) {
        try (var consumer = new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.assign(List.of(partition));
            consumer.seek(partition, offset);
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofSeconds(30))) {
                return Long.toString(record.offset());
            }
            return "nothing";
        }
    }

    private static String goOn(Properties config, TopicPartition partition, long offset, long ms) {
        try (var consumer = new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.assign(List.of(partition));
            for (long end = System.currentTimeMillis() + ms; System.currentTimeMillis() < end; ) {
                consumer.seek(partition, offset);
                if (consumer.poll(Duration.ofSeconds(30)).isEmpty()) {
                    return "nothing";
                }
            }
            double count = 0;
            for (var metric : consumer.metrics().entrySet()) {
                if (metric.getKey().name().equals("successful-reauthentication-total") && metric.getKey().tags().size() == 1) {
                    count += (Double) metric.getValue().metricValue();
                }
            }
            return Long.toString((long) count);
        }
    }

    private static AclBinding binding(String[] w, int at) {
        ResourcePattern of = new ResourcePattern(ResourceType.valueOf(w[at]), w[at + 1], PatternType.valueOf(w[at + 2]));
        return new AclBinding(of, new AccessControlEntry(w[at + 3], w[at + 4], AclOperation.valueOf(w[at + 5]),
            AclPermissionType.valueOf(w[at + 6])));
    }

    private static AuthorizableRequestContext client(String principal, InetAddress address) {
        return (AuthorizableRequestContext) Proxy.newProxyInstance(Secured.class.getClassLoader(),
            new Class<?>[] {AuthorizableRequestContext.class}, (proxy, method, args) -> switch (method.getName()) {
                case "principal" -> SecurityUtils.parseKafkaPrincipal(principal);
                case "clientAddress" -> address;
                case "requestType" -> 1;
                default -> throw new UnsupportedOperationException(method.getName());
            });
    }
}
