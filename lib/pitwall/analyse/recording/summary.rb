# frozen_string_literal: true

module Pitwall
  module Analyse
    # What a recording is of and how much of it to believe, over all its processes.
    class Summary
      # Counters of STAT that mean lost or delayed samples, with how a sentence names them.
      LOSSES = %w[missed_ticks deferred_ticks dropped refused_frames truncated timers_refused signal_lost write_error].freeze

      # Wall time so many times the CPU time is mostly waiting.
      MOSTLY_WAITING = 10
      # Waking up takes a tenth of a millisecond at times.
      LATE_INTERVAL_NS = 1_000_000
      # Share of the CPU time.
      NOTEWORTHY_TICKS = 0.01
      # Where so many of the ticks came late, other programs had the cores, and the handlers lay waiting for them as well.
      CROWDED = 0.05
      # Of a server.
      UNMARKED = "requests are not marked: with `use Pitwall::Rack::Requests` (doc/guides/slow-request.md) the report has times by route, and `compare` a verdict on them"
      private_constant :MOSTLY_WAITING, :LATE_INTERVAL_NS, :NOTEWORTHY_TICKS, :CROWDED

      # @return [Array<Record::Segment>]
      attr_reader :segments

      #: (Array[Record::Segment]) -> void
      def initialize(segments)
        @segments = segments
      end

      #: () -> Array[Record::Header]
      def headers = @segments.map(&:header)

      # How many processes it is of, however many files each wrote.
      #: () -> Integer
      def processes = Processes.of(@segments).size

      # @return [Array<String>] programs, each once
      #: () -> Array[String]
      def programs = headers.map(&:program).compact.uniq

      # @return [Array<String>] "ruby 3.4.1 +PRISM …", each once
      #: () -> Array[String]
      def rubies = headers.map { |header| header.ruby["description"] || header.ruby["version"] }.grep(String).uniq

      #: () -> Array[String]
      def modes = headers.map(&:mode).compact.uniq

      # @return [Array<String>] why signals were used unasked, each once
      #: () -> Array[String]
      def signal_reasons = headers.select { |header| header.mode == "signal" }.map(&:mode_reason).compact.uniq - ["asked for"]

      #: () -> Array[Integer]
      def intervals_ns = headers.map(&:interval_ns).compact.uniq

      # @return [Array<String>] what the recording Ruby or mode could not tell, each once
      #: () -> Array[String]
      def notes
        notes = headers.flat_map(&:notes)
        notes << "safepoint-biased: samples fall where Ruby checks for interrupts" if modes.include?("safepoint") && notes.none? { |note| note.include?("safepoint") }
        unless headers.all? { |header| header.thread_states? || header.mode == "none" } || notes.any? { |note| note.match?(/gvl/i) }
          notes << "this Ruby gives no thread events: waiting for the GVL can't be told from running or sleeping"
        end
        ticks = TickCost.of(@segments)
        notes << ticked(ticks) if ticks.share > NOTEWORTHY_TICKS
        notes.concat(Unseen.notes(@segments))
        left_out = stat("labels_left_out")
        notes << "more sets of labels than a recording holds: #{left_out} times a block counts as \"(other)\"" if left_out.positive?
        notes.concat(query_notes)
        notes << UNMARKED if Server.unmarked?(@segments)
        notes.uniq
      end

      # Of each recording from the start of its first process to the end of its last, in ns (the sum of all where starts are unknown);
      # time between recordings is none of theirs, and what two of them share counts once.
      #: () -> Integer
      def elapsed_ns
        spans = @segments.map { |segment| [segment.header.started_at_ns, segment.stat("elapsed_ns")] }
        return spans.sum(&:last) if spans.any? { |start, _| start.nil? }

        whole = @segments.zip(spans).group_by { |segment, _| segment.recording }.values.map do |parts|
          [parts.map { |_, (start, _)| start }.min, parts.map { |_, span| span.sum }.max]
        end
        covered(whole)
      end

      # A counter of STAT over all processes.
      #: (String) -> Integer
      def stat(name) = @segments.sum { |segment| segment.stat(name) }

      # Counters of losses and how many samples there were, e.g. {"captures" => 1990, "dropped" => 1, …}. write_error is no counter: the first
      # process's that has one.
      #: () -> Hash[String, Integer]
      def losses = (%w[ticks captures] + LOSSES).to_h { |name| [name, name == "write_error" ? write_error : stat(name)] }

      # Were calls traced?
      #: () -> bool
      def traced? = @segments.any?(&:traced?)

      # Calls traced, and those beyond the limit of nodes, which are counted nowhere.
      #: () -> Integer
      def calls = @segments.sum { |segment| segment.calls.sum(&:calls) }

      #: () -> Integer
      def lost_calls = @segments.map { |segment| segment.tracing["lost_calls"] }.grep(Integer).sum

      # Were calls to be traced, and nothing else recorded, but none came?
      #: () -> bool
      def uncalled? = traced? && calls.zero? && @segments.none? { |segment| segment.sampled? || segment.allocation_totals }

      # Time that the probes of traced calls took, as estimated, in ns; it is taken off the times shown.
      #: () -> Integer
      def probe_ns = @segments.sum { |segment| segment.calls.sum(&:probe) }

      # What tracing one call costs, by kind of what is called: [ns inside the call, ns in its caller, error in ns]; the first
      # process's.
      #: () -> Hash[String, [Float, Float, Float]]
      def probes
        probes = @segments.find(&:traced?)&.tracing&.fetch("probe_ns", nil)
        return {} unless probes.is_a?(Hash)

        probes.select { |_, costs| costs.is_a?(Array) && costs.size == 3 && costs.all?(Numeric) }
      end

      # Does any traced process have this ("cpu", "objects", "bytes")?
      #: (String) -> bool
      def traced_with?(what) = @segments.any? { |segment| segment.tracing[what] == true }

      # Time that measuring took: wall clock in the program's threads (in the handler and while naming, which may be
      # more than their CPU time), and CPU time of Pitwall's own.
      #: () -> Integer
      def own_ns = stat("handler_ns") + stat("naming_ns") + stat("own_cpu_ns")

      # own_ns as a share of the process's CPU time; nil when that is unknown, or the program or the handlers waited so much that a part by the
      # wall clock says nothing of it.
      #: () -> Float?
      def own_share
        cpu = stat("process_cpu_ns")
        own_ns.fdiv(cpu) if cpu.positive? && own_ns <= cpu && elapsed_ns <= MOSTLY_WAITING * cpu && !crowded?
      end

      # The part of its ticks that a reader on another core came late to; nil where none read, or so often that it is always late by a little.
      #: () -> Float?
      def reader_late_share
        read = @segments.select { |segment| segment.header.mode == "outside" && segment.header.interval_ns.to_i >= LATE_INTERVAL_NS }
        due = read.sum { |segment| segment.stat("elapsed_ns").fdiv(segment.header.interval_ns) }
        read.sum { |segment| segment.stat("missed_ticks") } / due if due.positive?
      end

      private

      # What of the counting of queries went wrong.
      def query_notes
        left_out, failed = stat("queries_left_out"), stat("queries_failed")
        [*("more different queries than a recording holds: #{left_out} times one has no line of its own" if left_out.positive?),
         *("queries could not be counted as they should #{failed} times; the program's own went on" if failed.positive?)]
      end

      # Handlers are timed by the wall clock; what reads from outside is timed by its CPU.
      def crowded?
        late, ticks = stat("missed_ticks"), stat("ticks")
        stat("handler_ns").positive? && late > CROWDED * (late + ticks)
      end

      def write_error = @segments.map { |segment| segment.stat("write_error") }.find(&:positive?) || 0

      def ticked(ticks)
        format("a tick interrupts threads that wait as well, for about %d µs each: %.1f%% of the CPU time of all threads is that, in rows that only wait (--mode outside interrupts nothing)",
               (ticks.ns / 1000.0 / ticks.ticks).round, ticks.share * 100)
      end

      # Length of what spans cover together.
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
