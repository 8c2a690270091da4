import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.Base64;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

/** What Kafka's assignors give the members of a group: a line with the group as JSON, in base64, in; a line of JSON out. */
public class Assignors {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        PrintStream out = System.out;
        System.setOut(System.err);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            try {
                byte[] found = JSON.writeValueAsBytes(assigned(JSON.readTree(Base64.getDecoder().decode(line))));
                out.println("ok " + Base64.getEncoder().encodeToString(found));
            } catch (Throwable e) {
                out.println("refused " + e.toString().replace('\n', ' '));
            }
            out.flush();
        }
    }

    private static Map<String, Map<String, Set<Integer>>> assigned(JsonNode group) {
        Map<Uuid, Integer> partitions = new HashMap<>();
        group.get("partitions").fields().forEachRemaining(e -> partitions.put(Uuid.fromString(e.getKey()), e.getValue().asInt()));
        Map<String, MemberSubscriptionAndAssignmentImpl> members = new LinkedHashMap<>();
        Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        for (JsonNode member : group.get("members")) {
            String id = member.get("id").asText();
            Map<Uuid, Set<Integer>> assigned = new LinkedHashMap<>();
            member.get("assigned").fields().forEachRemaining(e -> {
                Uuid topic = Uuid.fromString(e.getKey());
                for (JsonNode number : e.getValue()) {
                    assigned.computeIfAbsent(topic, __ -> new LinkedHashSet<>()).add(number.asInt());
                    owners.computeIfAbsent(topic, __ -> new HashMap<>()).put(number.asInt(), id);
                }
            });
            Set<Uuid> topics = new TreeSet<>();
            member.get("topics").forEach(topic -> topics.add(Uuid.fromString(topic.asText())));
            members.put(id, new MemberSubscriptionAndAssignmentImpl(
                Optional.empty(), Optional.ofNullable(member.get("instance").textValue()), topics, new Assignment(assigned)));
        }
        boolean isRange = group.get("assignor").asText().equals("range");
        ConsumerGroupPartitionAssignor assignor = isRange ? new RangeAssignor() : new UniformAssignor();
        SubscriptionType type = group.get("homogeneous").asBoolean() ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS;
        Map<String, Map<String, Set<Integer>>> found = new TreeMap<>();
        assignor.assign(new GroupSpecImpl(members, type, owners, Optional.empty()), describer(partitions)).members().forEach((id, of) -> {
            Map<String, Set<Integer>> numbers = new TreeMap<>();
            of.partitions().forEach((topic, some) -> numbers.put(topic.toString(), new TreeSet<>(some)));
            found.put(id, numbers);
        });
        return found;
    }

    private static SubscribedTopicDescriber describer(Map<Uuid, Integer> partitions) {
        return new SubscribedTopicDescriber() {
            public int numPartitions(Uuid topicId) {
                return partitions.getOrDefault(topicId, -1);
            }

            public Set<String> racksForPartition(Uuid topicId, int partition) {
                return Set.of();
            }
        };
    }
}
