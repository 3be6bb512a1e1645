# frozen_string_literal: true

require "pitwall/show/caches/words"
require "shellwords"

module Pitwall
  module Views
    # Commands that prove what the report on caches advises, with the names of the recorded program.
    #
    # One command counts: its status is 0 once the program changes less than it did. Another measures what the method
    # that makes the most costly change costs its callers (`compare --stub`). Of a program that is no benchmark it
    # names a file to be written.
    # @api private
    class CacheProofs
      COUNTERS = { constants: "constants_changed", classes: "classes_made", ancestors: "ancestors_changed",
                   methods: "methods_changed", operators: "methods_changed", class_variables: "global_cvar_state",
                   shapes: "next_shape_id", tracing: "tracing_enabled" }.freeze
      # What `compare --stub` can empty.
      METHOD = /\A[A-Z]\w*(?:::[A-Z]\w*)*[#.][^\s#.]+\z/.freeze
      BENCHMARK = "BENCH.rb"
      private_constant :COUNTERS, :METHOD, :BENCHMARK

      # @param command [Array<String>, nil] the recorded command
      #: (Analyse::Caches, ?command: Array[String]?) -> void
      def initialize(caches, command: nil)
        @caches = caches
        @command = command
      end

      # @param rows [Array] rows of Analyse::Caches#changes
      # @return [Hash{Symbol => Array<String>}] by group of Show::CachesWords
      #: (Array[untyped]) -> Hash[Symbol, Array[String]]
      def to_h(rows)
        rows.group_by { |row, _| Show::CachesWords.group(row.kind) }.to_h do |group, of_group|
          [group, [count(group), *time(of_group)].compact]
        end
      end

      # The command that takes samples as well.
      #: () -> String
      def samples = "pitwall caches --samples#{after} -- #{typed}"

      private

      def count(group)
        counter = COUNTERS[group]
        now = @caches.counters[counter]
        return if now.nil? || now.zero?

        %(pitwall caches#{after} --fail-if "#{counter} > #{now - 1}" -- #{typed})
      end

      # Of the most costly row whose method has a name.
      def time(rows)
        method = rows.lazy.filter_map { |row, _| method_of(row) }.first
        return ["pitwall compare --dirty -- #{typed}"] unless method

        ["pitwall compare --stub #{typed_method(method)} #{benchmark}"]
      end

      def method_of(row)
        @caches.stack(row).each do |name, path, _line|
          next if path.empty? || path.start_with?("<internal:")

          return name if METHOD.match?(name)
        end
        nil
      end

      # A # within a word is no comment.
      def typed_method(name) = name.match?(/\A[\w:.#]+\z/) ? name : Shellwords.escape(name)

      def after
        return "" if @caches.after.all?

        @caches.after.boot ? " --after boot" : %( --after "#{@caches.after.works} requests")
      end

      def typed = @command ? Shellwords.join(@command) : "CMD"

      # A Ruby script can be measured itself.
      def benchmark
        script = @command&.last
        return BENCHMARK unless @command && File.basename(@command.first).start_with?("ruby") && script.end_with?(".rb")

        Shellwords.escape(script)
      end
    end
  end
end
