import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.StringJoiner;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.GroupListing;
import org.apache.kafka.clients.admin.MemberDescription;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Kafka's own consumers in the group "readers", and its admin client, asked a line at a time. The first word is the endpoint's address.
 *   start NAME TOPIC ...      a member of this name subscribes, reads and commits, with the classic protocol
 *   join NAME TOPIC ...       the same with the consumer protocol; a topic of the form /REGEX/ is a regular expression
 *   shared NAMES PARTITIONS   once all members of these names have partitions, together so many: how many each has
 *   stop NAME ...             the members close; how many records each was given
 *   group                     what is told of the group: its state, and the members' names with the numbers of their partitions
 *   lag                       of each partition what is committed, and how much comes after it
 *   forget                    deletes the group; the groups that are left
 */
public class Groups {
    private static final Map<String, Member> MEMBERS = new TreeMap<>();

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        PrintStream out = System.out;
        System.setOut(System.err);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            List<String> words = List.of(line.split(" "));
            String answer;
            try {
                answer = answer(words.get(0), words.get(1), words.subList(2, words.size()));
            } catch (Exception e) {
                answer = e.toString().replace('\n', ' ');
            }
            out.println(answer);
            out.flush();
        }
    }

    private static String answer(String address, String verb, List<String> words) throws Exception {
        switch (verb) {
            case "start", "join":
                MEMBERS.put(words.get(0), new Member(address, verb.equals("join"), words.get(0), words.subList(1, words.size())));
                MEMBERS.get(words.get(0)).start();
                return "started";
            case "shared":
                return shared(List.of(words.get(0).split(",")), Integer.parseInt(words.get(1)));
            case "stop":
                StringJoiner counts = new StringJoiner(" ");
                for (String name : words) {
                    Member member = MEMBERS.remove(name);
                    member.consumer.wakeup();
                    member.join();
                    counts.add(String.valueOf(member.count));
                }
                return counts.toString();
            default:
                try (Admin admin = Admin.create(Map.of("bootstrap.servers", address))) {
                    return verb.equals("group") ? group(admin) : verb.equals("lag") ? lag(admin) : forget(admin);
                }
        }
    }

    private static String shared(List<String> names, int partitions) throws InterruptedException {
        for (long end = System.nanoTime() + 60_000_000_000L; System.nanoTime() < end; Thread.sleep(20)) {
            Set<TopicPartition> all = new java.util.HashSet<>();
            int count = 0;
            boolean hasIdle = false;
            StringJoiner found = new StringJoiner(" ");
            for (String name : names) {
                Set<TopicPartition> assigned = MEMBERS.get(name).assigned;
                all.addAll(assigned);
                count += assigned.size();
                hasIdle |= assigned.isEmpty();
                found.add(String.valueOf(assigned.size()));
            }
            if (count == partitions && all.size() == partitions && !hasIdle) {
                return found.toString();
            }
        }
        return "not shared";
    }

    private static String group(Admin admin) throws Exception {
        ConsumerGroupDescription found = admin.describeConsumerGroups(List.of("readers")).describedGroups().get("readers").get();
        Set<String> members = new TreeSet<>();
        for (MemberDescription member : found.members()) {
            members.add(member.clientId() + "=" + member.assignment().topicPartitions().size() + "@" + member.host());
        }
        return found.groupState() + " " + found.partitionAssignor() + " " + String.join(" ", members);
    }

    private static String lag(Admin admin) throws Exception {
        Map<TopicPartition, OffsetAndMetadata> committed =
            admin.listConsumerGroupOffsets("readers").partitionsToOffsetAndMetadata().get();
        Map<TopicPartition, OffsetSpec> asked = new HashMap<>();
        committed.keySet().forEach(partition -> asked.put(partition, OffsetSpec.latest()));
        Set<String> found = new TreeSet<>();
        admin.listOffsets(asked).all().get().forEach((partition, end) ->
            found.add(partition + "=" + committed.get(partition).offset() + "+" + (end.offset() - committed.get(partition).offset())));
        return String.join(" ", found);
    }

    private static String forget(Admin admin) throws Exception {
        admin.deleteConsumerGroups(List.of("readers")).all().get();
        StringJoiner left = new StringJoiner(" ", "left ", "");
        for (GroupListing group : admin.listGroups().all().get()) {
            left.add(group.groupId());
        }
        return left.toString();
    }

    private static class Member extends Thread {
        final KafkaConsumer<byte[], byte[]> consumer;
        volatile Set<TopicPartition> assigned = Set.of();
        volatile long count;
        private boolean isBehind;

        Member(String address, boolean isAssignedByBroker, String name, List<String> topics) {
            Map<String, Object> config = new HashMap<>();
            config.put("bootstrap.servers", address);
            config.put("group.id", "readers");
            config.put("client.id", name);
            config.put("enable.auto.commit", false);
            config.put("auto.offset.reset", "earliest");
            if (isAssignedByBroker) {
                config.put("group.protocol", "consumer");
            } else {
                config.put("session.timeout.ms", 6000);
                config.put("heartbeat.interval.ms", 100);
                config.put("partition.assignment.strategy", CooperativeStickyAssignor.class.getName());
            }
            consumer = new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
            if (topics.get(0).startsWith("/")) {
                consumer.subscribe(new SubscriptionPattern(topics.get(0).substring(1, topics.get(0).length() - 1)));
            } else {
                consumer.subscribe(topics);
            }
            setDaemon(true);
        }

        private boolean commits() {
            try {
                consumer.commitSync();
                return true;
            } catch (RebalanceInProgressException e) {
                return false;
            }
        }

        @Override
        public void run() {
            try {
                while (true) {
                    int polled = consumer.poll(Duration.ofMillis(100)).count();
                    count += polled;
                    assigned = Set.copyOf(consumer.assignment());
                    if (polled > 0 || isBehind) {
                        isBehind = !commits();
                    }
                }
            } catch (WakeupException e) {
                consumer.close();
            }
        }
    }
}
