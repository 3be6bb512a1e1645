# frozen_string_literal: true

module Pitwall
  module Analyse
    # What a recording is of and how much of it to believe, over all its processes.
    class Summary
      # Counters of STAT that mean lost or delayed samples, with how a sentence names them.
      LOSSES = %w[missed_ticks deferred_ticks dropped refused_frames truncated timers_refused signal_lost write_error].freeze

      # Wall time so many times the CPU time is mostly waiting.
      MOSTLY_WAITING = 10
      private_constant :MOSTLY_WAITING

      # @return [Array<Record::Segment>]
      attr_reader :segments

      #: (Array[Record::Segment]) -> void
      def initialize(segments)
        @segments = segments
      end

      #: () -> Array[Record::Header]
      def headers = @segments.map(&:header)

      # @return [Array<String>] programs, each once
      #: () -> Array[String]
      def programs = headers.map(&:program).compact.uniq

      # @return [Array<String>] "ruby 3.4.1 +PRISM …", each once
      #: () -> Array[String]
      def rubies = headers.map { |header| header.ruby["description"] || header.ruby["version"] }.grep(String).uniq

      #: () -> Array[String]
      def modes = headers.map(&:mode).compact.uniq

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

      # Counters of losses and how many samples there were, e.g. {"captures" => 1990, "dropped" => 1, …}.
      #: () -> Hash[String, Integer]
      def losses = (%w[ticks captures] + LOSSES).to_h { |name| [name, stat(name)] }

      # Were calls traced?
      #: () -> bool
      def traced? = @segments.any?(&:traced?)

      # Calls traced, and those beyond the limit of nodes, which are counted nowhere.
      #: () -> Integer
      def calls = @segments.sum { |segment| segment.calls.sum(&:calls) }

      #: () -> Integer
      def lost_calls = @segments.map { |segment| segment.tracing["lost_calls"] }.grep(Integer).sum

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

      # own_ns as a share of the process's CPU time; nil when that is unknown, or the program waited so much that a part by the wall
      # clock says nothing of it.
      #: () -> Float?
      def own_share
        cpu = stat("process_cpu_ns")
        own_ns.fdiv(cpu) if cpu.positive? && own_ns <= cpu && elapsed_ns <= MOSTLY_WAITING * cpu
      end

      private

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
