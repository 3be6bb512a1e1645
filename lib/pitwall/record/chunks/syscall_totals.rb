# frozen_string_literal: true

require "pitwall/record/chunk"

module Pitwall
  module Record
    # How complete the system calls of a process are.
    #
    # lost:            calls without a row, because the disk or the machine was too busy; the totals have them
    # refused_threads: threads whose calls the kernel refused to report
    # stopped_by:      :seccomp or :dispatch where the program used the same feature of the kernel, which ended the
    #                  recording of calls
    # stepped_back:    calls may be missing right after the start of a thread or process
    SyscallFacts = Struct.new(:lost, :refused_threads, :stopped_by, :stepped_back, keyword_init: true) do
      # @api private
      #: (Integer, Integer, Integer) -> SyscallFacts
      def self.of(flags, lost, refused)
        stopped_by = if flags.anybits?(1) then :seccomp
                     elsif flags.anybits?(2) then :dispatch
                     end
        new(lost: lost, refused_threads: refused, stopped_by: stopped_by, stepped_back: flags.anybits?(4))
      end

      # Sentences for people on what is missing; empty where nothing is.
      #: () -> Array[String]
      def words
        words = []
        if lost.positive?
          words << "#{lost} system calls are in the totals only: the disk or the machine was too busy for their rows"
        end
        if refused_threads.positive?
          words << "system calls of #{refused_threads} threads were not seen: the kernel refused to dispatch them"
        end
        case stopped_by
        when :seccomp then words << "it set a seccomp filter: its system calls are seen up to there only"
        when :dispatch
          words << "it asked for syscall user dispatch itself: its system calls are seen up to there only"
        end
        words << "system calls right after a thread or process was started may be missing" if stepped_back
        words
      end
    end

    module Chunks
      # SYST: system calls by name. Chunks are cumulative: the last row of a name counts. The strings of names may come
      # in a later chunk.
      class SyscallTotals < Chunk
        # Names of system calls; Linux has some 400.
        LIMIT = 4096

        type "SYST"
        # @return [SyscallFacts, nil] how system calls were seen; nil where they were not recorded
        offers :syscall_facts

        def initialize(...)
          super
          @by_name = {}
        end

        #: (Columns) -> void
        def read_columns(columns)
          facts = SyscallFacts.of(columns.int, columns.int, columns.int)
          count = columns.int
          names, calls, errors, ns = %w[name calls errors ns].map { |name| columns.column(count, name) }
          raise Malformed, "has totals of #{count} system calls" if count > LIMIT

          unless (@by_name.keys | names).size <= LIMIT
            raise Malformed, "goes past the limit for names of system calls"
          end
          names.each_with_index { |name, at| @by_name[name] = [calls[at], errors[at], ns[at]] }
          @syscall_facts = facts
        end

        def settle(_payload_at)
          @totals = @by_name.transform_keys { |id| table(Strings).known(id) }
        end

        def parts = super.merge(syscall_totals: @totals)

        #: () -> Array[[Symbol, String]]
        def warnings = @syscall_facts ? @syscall_facts.words.map { |words| [:syscalls, words] } : []
      end
    end

    class Segment
      # @return [Hash{String => Array(Integer, Integer, Integer)}] by name: calls, how many failed, ns
      #: () -> Hash[String, [Integer, Integer, Integer]]
      attr_reader :syscall_totals

      # Were system calls recorded, or counted?
      #: () -> bool
      def syscalls? = !syscall_facts.nil?

      # Were system calls only counted, as with --count?
      #: () -> bool
      def syscalls_counted?
        collectors = header.settings["collectors"]
        setting = collectors["syscalls"] if collectors.is_a?(Hash)
        setting.is_a?(Hash) && %w[1 true].include?(setting["count"].to_s)
      end
    end
  end
end
