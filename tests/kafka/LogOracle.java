import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ScheduledFuture;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.Cleaner;
import org.apache.kafka.storage.internals.log.FetchDataInfo;
import org.apache.kafka.storage.internals.log.LogAppendInfo;
import org.apache.kafka.storage.internals.log.LogCleanerManager;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogOffsetsListener;
import org.apache.kafka.storage.internals.log.LogStartOffsetIncrementReason;
import org.apache.kafka.storage.internals.log.LogToClean;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.log.VerificationGuard;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/** Kafka's own log engine behind standard input: a command a line, words apart by a space; a JSON object a line in answer. */
public class LogOracle {
  static long now;
  static UnifiedLog log;

  /** The clock stands where the last command "clock" has put it. */
  static class Clock implements Time {
    @Override public long milliseconds() { return now; }
    @Override public long nanoseconds() { return now * 1_000_000; }
    @Override public void sleep(long ms) { }
    @Override public void waitObject(Object o, Supplier<Boolean> condition, long deadline) { }
  }

  /** What is due at once is done at once; what is due later is never done. */
  static class AtOnce implements Scheduler {
    @Override public void startup() { }
    @Override public void shutdown() { }
    @Override public ScheduledFuture<?> schedule(String name, Runnable task, long delay, long period) {
      if (delay == 0 && period < 0) task.run();
      return new Never();
    }
    @Override public void resizeThreadPool(int size) { }
  }

  static class Never extends java.util.concurrent.FutureTask<Void> implements ScheduledFuture<Void> {
    Never() { super(() -> null); }
    @Override public long getDelay(java.util.concurrent.TimeUnit unit) { return 0; }
    @Override public int compareTo(java.util.concurrent.Delayed other) { return 0; }
  }

  static LogConfig config(String[] words, int from) {
    Map<String, String> settings = new HashMap<>();
    for (String word : Arrays.asList(words).subList(from, words.length)) {
      String[] pair = word.split("=", 2);
      settings.put(pair[0], pair[1]);
    }
    return new LogConfig(settings);
  }

  static void open(String dir, long start, long point, boolean clean, LogConfig config) throws Exception {
    new File(dir).mkdirs();
    log = UnifiedLog.create(new File(dir), config, start, point, new AtOnce(), new BrokerTopicStats(), new Clock(), 300_000,
        new ProducerStateManagerConfig(86_400_000, false), 600_000, new LogDirFailureChannel(1), clean, Optional.empty(),
        new ConcurrentHashMap<>(), config.remoteStorageEnable(), LogOffsetsListener.NO_OP_OFFSETS_LISTENER);
  }

  static String state() {
    String segments = log.logSegments().stream().map(s -> "[" + s.baseOffset() + "," + s.size() + "]").collect(Collectors.joining(","));
    String producers = log.activeProducers().stream().sorted(Comparator.comparingLong(p -> p.producerId()))
        .map(p -> "\"" + p.producerId() + "\":[" + p.producerEpoch() + "," + p.lastSequence() + "," + p.lastTimestamp() + ","
            + p.coordinatorEpoch() + "," + p.currentTxnStartOffset() + "]").collect(Collectors.joining(","));
    return "{\"log_start_offset\":" + log.logStartOffset() + ",\"log_end_offset\":" + log.logEndOffset()
        + ",\"last_stable_offset\":" + log.lastStableOffset() + ",\"high_watermark\":" + log.highWatermark()
        + ",\"latest_epoch\":" + log.latestEpoch().orElse(-1) + ",\"segments\":[" + segments + "],\"producers\":{" + producers + "}}";
  }

  static MemoryRecords records(String base64) {
    return MemoryRecords.readableRecords(ByteBuffer.wrap(Base64.getDecoder().decode(base64)));
  }

  static String appended(LogAppendInfo info) {
    return "{\"first_offset\":" + info.firstOffset() + ",\"last_offset\":" + info.lastOffset() + ",\"max_timestamp\":"
        + info.maxTimestamp() + ",\"log_append_time\":" + info.logAppendTime() + "}";
  }

  static String replay(String source, int epoch) throws Exception {
    long spent = 0;
    File[] files = new File(source).listFiles((dir, name) -> name.endsWith(".log"));
    Arrays.sort(files);
    for (File file : files) {
      FileRecords all = FileRecords.open(file, false);
      ByteBuffer buffer = ByteBuffer.allocate(all.sizeInBytes());
      all.readInto(buffer, 0);
      for (MutableRecordBatch batch : MemoryRecords.readableRecords(buffer).batches()) {
        ByteBuffer one = ByteBuffer.allocate(batch.sizeInBytes());
        batch.writeTo(one);
        one.flip();
        MemoryRecords records = MemoryRecords.readableRecords(one);
        if (epoch >= 0) one.putLong(0, 0);
        long start = System.nanoTime();
        if (epoch < 0) log.appendAsFollower(records, batch.partitionLeaderEpoch());
        else log.appendAsLeader(records, epoch);
        spent += System.nanoTime() - start;
      }
      all.close();
    }
    return "{\"seconds\":" + spent / 1e9 + "}";
  }

  static String read(long offset, int max, FetchIsolation isolation, boolean one) throws Exception {
    FetchDataInfo info = log.read(offset, max, isolation, one);
    ByteBuffer bytes = ByteBuffer.allocate(info.records.sizeInBytes());
    if (info.records instanceof FileRecords) ((FileRecords) info.records).readInto(bytes, 0);
    byte[] sum = MessageDigest.getInstance("SHA-256").digest(bytes.array());
    List<String> aborted = new ArrayList<>();
    info.abortedTransactions.ifPresent(all -> all.forEach(t -> aborted.add("[" + t.producerId() + "," + t.firstOffset() + "]")));
    return "{\"offset\":" + info.fetchOffsetMetadata.messageOffset + ",\"size\":" + info.records.sizeInBytes() + ",\"sum\":\""
        + Base64.getEncoder().encodeToString(sum) + "\",\"cut\":" + info.firstEntryIncomplete + ",\"aborted\":[" + String.join(",", aborted) + "]}";
  }

  /** Cleans the log from its first dirty offset up to the segment with the uncleanable one, by an offset map of some bytes. */
  static String clean(long firstDirty, long uncleanable, int memory, double loadFactor) throws Exception {
    Throttler unlimited = new Throttler(Double.MAX_VALUE, 300, "cleaner-io", "bytes", Time.SYSTEM);
    Cleaner cleaner = new Cleaner(0, new SkimpyOffsetMap(memory), 1 << 18, 1 << 20, loadFactor, unlimited, new Clock(), partition -> { });
    LogToClean cleanable = new LogToClean(log, firstDirty, uncleanable, false);
    long start = System.nanoTime();
    long end = cleaner.clean(cleanable).getKey();
    return "{\"end_offset\":" + end + ",\"seconds\":" + (System.nanoTime() - start) / 1e9 + "}";
  }

  private static Object managers(String method, Class<?>[] types, Object... args) throws Exception {
    Method found = LogCleanerManager.class.getDeclaredMethod(method, types);
    found.setAccessible(true);
    return found.invoke(null, args);
  }

  private static Object of(Object record, String field) throws Exception {
    Method found = record.getClass().getDeclaredMethod(field);
    found.setAccessible(true);
    return found.invoke(record);
  }

  /** What Kafka's manager would have cleaned next; the checkpoint is "-" without one. */
  static String dirty(String checkpointed) throws Exception {
    Optional<Long> last = checkpointed.equals("-") ? Optional.empty() : Optional.of(Long.parseLong(checkpointed));
    Object offsets = managers("cleanableOffsets", new Class<?>[] {UnifiedLog.class, Optional.class, long.class}, log, last, now);
    long first = (Long) of(offsets, "firstDirtyOffset");
    LogToClean found = new LogToClean(log, first, (Long) of(offsets, "firstUncleanableDirtyOffset"), false);
    Object overdue = managers("maxCompactionDelay", new Class<?>[] {UnifiedLog.class, long.class, long.class}, log, first, now);
    return "{\"first_dirty_offset\":" + first + ",\"first_uncleanable_offset\":" + found.firstUncleanableOffset()
        + ",\"checkpoint_is_invalid\":" + of(offsets, "forceUpdateCheckpoint") + ",\"clean_bytes\":" + found.cleanBytes()
        + ",\"cleanable_bytes\":" + found.cleanableBytes() + ",\"overdue_ms\":" + overdue + "}";
  }

  static String offsetFor(long timestamp) {
    return log.fetchOffsetByTimestamp(timestamp, Optional.empty()).timestampAndOffsetOpt()
        .map(t -> "{\"timestamp\":" + t.timestamp + ",\"offset\":" + t.offset + ",\"epoch\":" + t.leaderEpoch.orElse(-1) + "}").orElse("{}");
  }

  /** Looks up random offsets, or the timestamps of random offsets, and says how long it took. */
  static String lookUp(String what, int times, long end, long timestampOfFirst, long seed) throws Exception {
    Random random = new Random(seed);
    long found = 0;
    long start = System.nanoTime();
    for (int i = 0; i < times; i++) {
      long offset = (long) (random.nextDouble() * end);
      if (what.equals("offsets")) found += log.read(offset, 1, FetchIsolation.LOG_END, true).fetchOffsetMetadata.messageOffset;
      else found += log.fetchOffsetByTimestamp(timestampOfFirst + offset, Optional.empty()).timestampAndOffsetOpt().get().offset;
    }
    return "{\"seconds\":" + (System.nanoTime() - start) / 1e9 + ",\"found\":" + found + "}";
  }

  static String answer(String[] w) throws Exception {
    switch (w[0]) {
      case "clock": now = Long.parseLong(w[1]); return "{}";
      case "open": open(w[1], Long.parseLong(w[2]), Long.parseLong(w[3]), w[4].equals("clean"), config(w, 5)); return "{}";
      case "state": return state();
      case "replay": return replay(w[1], w.length > 2 ? Integer.parseInt(w[2]) : -1);
      case "follower": return appended(log.appendAsFollower(records(w[2]), Integer.parseInt(w[1])));
      case "leader": return appended(log.appendAsLeader(records(w[3]), Integer.parseInt(w[1]), AppendOrigin.valueOf(w[2]),
          RequestLocal.noCaching(), VerificationGuard.SENTINEL, (short) 0));
      case "roll": log.roll(); return "{}";
      case "truncate": return "{\"truncated\":" + log.truncateTo(Long.parseLong(w[1])) + "}";
      case "restart": log.truncateFullyAndStartAt(Long.parseLong(w[1]), Optional.empty()); return "{}";
      case "watermark": return "{\"high_watermark\":" + log.updateHighWatermark(Long.parseLong(w[1])) + "}";
      case "delete": return "{\"moved\":" + log.maybeIncrementLogStartOffset(Long.parseLong(w[1]), LogStartOffsetIncrementReason.ClientRecordDeletion) + "}";
      case "archived": log.updateHighestOffsetInRemoteStorage(Long.parseLong(w[1])); return "{}";
      case "retain": return "{\"deleted\":" + log.deleteOldSegments() + ",\"local_log_start_offset\":" + log.localLogStartOffset() + "}";
      case "flush": log.flush(false); return "{\"recovery_point\":" + log.recoveryPoint() + "}";
      case "read": return read(Long.parseLong(w[1]), Integer.parseInt(w[2]), FetchIsolation.valueOf(w[3]), w[4].equals("one"));
      case "lookup": return lookUp(w[1], Integer.parseInt(w[2]), Long.parseLong(w[3]), Long.parseLong(w[4]), 7);
      case "time": return offsetFor(Long.parseLong(w[1]));
      case "epoch": return log.endOffsetForEpoch(Integer.parseInt(w[1])).map(e -> "{\"epoch\":" + e.epoch() + ",\"offset\":" + e.offset() + "}").orElse("{}");
      case "dirty": return dirty(w[1]);
      case "clean": return clean(Long.parseLong(w[1]), Long.parseLong(w[2]), Integer.parseInt(w[3]), Double.parseDouble(w[4]));
      case "close": log.close(); return "{}";
      default: throw new IllegalArgumentException(w[0]);
    }
  }

  public static void main(String[] args) throws Exception {
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    PrintStream out = System.out;
    System.setOut(System.err);
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String answer;
      try {
        answer = answer(line.split(" "));
      } catch (Throwable e) {
        String message = String.valueOf(e.getMessage()).replace("\\", "/").replace("\"", "'").replaceAll("\\s+", " ");
        answer = "{\"error\":\"" + e.getClass().getSimpleName() + "\",\"message\":\"" + message + "\"}";
      }
      out.println(answer);
      out.flush();
    }
    System.exit(0);
  }
}
