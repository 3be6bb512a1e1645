# frozen_string_literal: true

module Pitwall
  module Analyse
    # Metadata of a recording over all its processes, and what limits its accuracy.
    class Summary
      # STAT counters of lost or delayed samples.
      LOSSES = %w[missed_ticks deferred_ticks dropped refused_frames truncated timers_refused signal_lost
                  write_error].freeze

      # A program mostly waits if its wall time is more than so many times its CPU time.
      MOSTLY_WAITING = 10
      # Shortest interval at which a late reader is reported. Waking up may take 0.1 ms, so shorter ones are always
      # late.
      LATE_INTERVAL_NS = 1_000_000
      # The cost of ticks is reported above this share of the CPU time.
      NOTEWORTHY_TICKS = 0.01
      # With a larger share of late ticks, other programs used the cores. The handlers waited for the cores too.
      CROWDED = 0.05
      # Note for a server without marked requests.
      UNMARKED = "requests are not marked: with `use Pitwall::Rack::Requests` (doc/guides/slow-request.md) " \
                 "the report has times by route, and `compare` a verdict on them"
      private_constant :MOSTLY_WAITING, :LATE_INTERVAL_NS, :NOTEWORTHY_TICKS, :CROWDED

      # @return [Array<Record::Segment>]
      attr_reader :segments

      #: (Array[Record::Segment]) -> void
      def initialize(segments)
        @segments = segments
      end

      # The header of each segment.
      #: () -> Array[Record::Header]
      def headers = @segments.map(&:header)

      # Number of processes. One process may have several segments.
      #: () -> Integer
      def processes = Processes.of(@segments).size

      # @return [Array<String>] programs, each once, e.g. "app.rb"
      #: () -> Array[String]
      def programs = headers.map(&:program).compact.uniq

      # @return [Array<String>] "ruby 3.4.1 +PRISM …", each once
      #: () -> Array[String]
      def rubies = headers.map { |header| header.ruby["description"] || header.ruby["version"] }.grep(String).uniq

      # @return [Array<String>] sampling modes, each once, e.g. "signal"
      #: () -> Array[String]
      def modes = headers.map(&:mode).compact.uniq

      # @return [Array<[String, String]>] format and file of each profile that was imported
      #: () -> Array[[String, String]]
      def imports = headers.filter_map(&:imported).map { |from| from.values_at("format", "file").map(&:to_s) }.uniq

      # @return [Array<String>] why Pitwall itself chose the mode "signal", each once
      #: () -> Array[String]
      def signal_reasons
        headers.select { |header| header.mode == "signal" }.map(&:mode_reason).compact.uniq - ["asked for"]
      end

      # @return [Array<Integer>] sampling intervals in ns, each once
      #: () -> Array[Integer]
      def intervals_ns = headers.map(&:interval_ns).compact.uniq

      # @return [Array<String>] what the recording does not show, and why; each once
      #: () -> Array[String]
      def notes
        notes = headers.flat_map(&:notes)
        if modes.include?("safepoint") && notes.none? { |note| note.include?("safepoint") }
          notes << "safepoint-biased: samples fall where Ruby checks for interrupts"
        end
        if headers.any? { |header| stateless?(header) } && notes.none?(/gvl/i)
          notes << "this Ruby gives no thread events: waiting for the GVL can't be told from running or sleeping"
        end
        ticks = TickCost.of(@segments)
        notes << tick_note(ticks) if ticks.share > NOTEWORTHY_TICKS
        notes.concat(Unseen.notes(@segments))
        left_out = stat("labels_left_out")
        if left_out.positive?
          notes << "more sets of labels than a recording holds: #{left_out} times a block counts as \"(other)\""
        end
        notes.concat(query_notes)
        notes << UNMARKED if Server.unmarked?(@segments)
        notes.uniq
      end

      # Recorded time in ns: for each recording, from the start of its first process to the end of its last.
      # Time that several recordings share counts once. Time between recordings does not count.
      # Without start times, it is the sum over all processes.
      #: () -> Integer
      def elapsed_ns
        spans = @segments.map { |segment| [segment.header.started_at_ns, segment.stat("elapsed_ns")] }
        return spans.sum(&:last) if spans.any? { |start, _| start.nil? }

        whole = @segments.zip(spans).group_by { |segment, _| segment.recording }.values.map do |parts|
          [parts.map { |_, (start, _)| start }.min, parts.map { |_, span| span.sum }.max]
        end
        covered(whole)
      end

      # Sum of a STAT counter over all processes.
      #: (String) -> Integer
      def stat(name) = @segments.sum { |segment| segment.stat(name) }

      # Numbers of ticks and captures, and counters of lost or delayed samples: {"captures" => 1990, "dropped" => 1, …}.
      # write_error is an error number, so it is not a sum but the first process's that has one.
      #: () -> Hash[String, Integer]
      def losses
        (%w[ticks captures] + LOSSES).to_h { |name| [name, name == "write_error" ? write_error : stat(name)] }
      end

      # Whether calls were traced.
      #: () -> bool
      def traced? = @segments.any?(&:traced?)

      # Number of traced calls. Calls beyond the limit of nodes are in lost_calls.
      #: () -> Integer
      def calls = @segments.sum { |segment| segment.calls.sum(&:calls) }

      # Number of calls that were not traced, because of the limit of nodes.
      #: () -> Integer
      def lost_calls = @segments.map { |segment| segment.tracing["lost_calls"] }.grep(Integer).sum

      # Whether only calls were to be recorded, but none was traced.
      #: () -> bool
      def uncalled?
        traced? && calls.zero? && @segments.none? { |segment| segment.sampled? || segment.allocation_totals }
      end

      # Estimated time of the probes of traced calls, in ns. The times of calls have it already subtracted.
      #: () -> Integer
      def probe_ns = @segments.sum { |segment| segment.calls.sum(&:probe) }

      # Costs of tracing one call, by the kind of the called method: [ns inside the call, ns in the caller, error in
      # ns].
      # From the first traced process.
      #: () -> Hash[String, [Float, Float, Float]]
      def probes
        probes = @segments.find(&:traced?)&.tracing&.fetch("probe_ns", nil)
        return {} unless probes.is_a?(Hash)

        probes.select { |_, costs| costs.is_a?(Array) && costs.size == 3 && costs.all?(Numeric) }
      end

      # Whether any traced process also recorded "cpu", "objects" or "bytes".
      #: (String) -> bool
      def traced_with?(what) = @segments.any? { |segment| segment.tracing[what] == true }

      # Time that measuring took, in ns.
      # The sum of the CPU time of Pitwall's own threads, and of the wall time of handlers and of naming in the
      # program's threads. This wall time may exceed the CPU time of the same work.
      #: () -> Integer
      def own_ns = stat("handler_ns") + stat("naming_ns") + stat("own_cpu_ns")

      # own_ns as a share of the process's CPU time, 0.0 to 1.0.
      # Nil if the CPU time is unknown, or if the program or the handlers waited too much to compare the wall time with
      # it.
      #: () -> Float?
      def own_share
        cpu = stat("process_cpu_ns")
        own_ns.fdiv(cpu) if cpu.positive? && own_ns <= cpu && elapsed_ns <= MOSTLY_WAITING * cpu && !crowded?
      end

      # Share of ticks at which a reader in another process (mode "outside") was late.
      # Nil if there was no such reader, or if its interval was so short that it is always late.
      #: () -> Float?
      def reader_late_share
        outside = @segments.select do |segment|
          segment.header.mode == "outside" && segment.header.interval_ns.to_i >= LATE_INTERVAL_NS
        end
        due = outside.sum { |segment| segment.stat("elapsed_ns").fdiv(segment.header.interval_ns) }
        outside.sum { |segment| segment.stat("missed_ticks") } / due if due.positive?
      end

      private

      # Whether the Ruby that was sampled gave no thread events.
      def stateless?(header) = !header.thread_states? && header.mode != "none" && header.imported.nil?

      # Notes on database queries that could not be counted.
      def query_notes
        left_out, failed = stat("queries_left_out"), stat("queries_failed")
        notes = []
        if left_out.positive?
          notes << "more different queries than a recording holds: #{left_out} times a query has no row of its own"
        end
        if failed.positive?
          notes << "#{failed} times a database query could not be counted; the program's query ran all the same"
        end
        notes
      end

      # Whether handlers waited for a core. Only the time of handlers is wall time; a reader's time is CPU time.
      def crowded?
        late, ticks = stat("missed_ticks"), stat("ticks")
        stat("handler_ns").positive? && late > CROWDED * (late + ticks)
      end

      def write_error = @segments.map { |segment| segment.stat("write_error") }.find(&:positive?) || 0

      def tick_note(ticks)
        format("ticks also interrupt waiting threads, for about %d µs each: %.1f%% of the CPU time of all threads " \
               "is ticks in rows that only wait (--mode outside interrupts nothing)",
               (ticks.ns / 1000.0 / ticks.ticks).round, ticks.share * 100)
      end

      # Length of the union of spans, in ns.
      def covered(spans)
        ended = nil
        spans.sort.sum do |from, to|
          from = [from, ended].compact.max
          ended = [to, ended].compact.max
          [to - from, 0].max
        end
      end
    end
  end
end
