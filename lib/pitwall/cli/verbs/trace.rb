# frozen_string_literal: true

require "pitwall/cli/recording/method_report"

module Pitwall
  module CLI
    # `pitwall trace -- CMD`: runs a command with the tracer in each of its Ruby processes: every call, exactly.
    class Trace < RecordedCommand
      include MethodReport

      WEIGHTS = %w[wall cpu wait calls objects bytes].freeze
      GC = %w[as-is off defer].freeze
      SIZES = { "K" => 1 << 10, "M" => 1 << 20, "G" => 1 << 30 }.freeze
      private_constant :WEIGHTS, :GC, :SIZES

      class << self
        #: () -> String
        def summary = "every call: exact counts, times, objects (2 to 10 times slower)"

        #: () -> Array[[String, String]]
        def examples
          [
            ["pitwall trace -- ruby report.rb", "every call, exactly"],
            ["pitwall trace --only-under 'Report#build' -- ruby report.rb", "below one method"]
          ]
        end
      end

      #: (OptionParser) -> void
      def define_options(parser)
        parser.separator("What to measure")
        parser.on("--no-cpu", "leave out CPU time") { @options[:cpu] = false }
        parser.on("--no-objects", "leave out the number of objects") { @options[:objects] = false }
        parser.on("--bytes", "the bytes of the objects' slots as well") { @options[:bytes] = true }
        parser.on("--gc HOW", GC, "as-is (default); off while tracing; or defer: with the clock stopped") do |how|
          @options[:gc] = how
        end
        parser.on("--gc-memory SIZE", "with --gc off or defer: collect above so much memory (1G)") do |text|
          @options[:gc_memory] = size(text)
        end
        parser.separator("")
        parser.separator("What to trace (what is left out counts as its caller's own)")
        parser.on("--path GLOB", "only methods and blocks in such files; repeatable") { |glob| add(:path, glob) }
        parser.on("--class NAME", "only methods of a class or module, and below it; repeatable") do |name|
          add(:class, name)
        end
        parser.on("--only-under METHOD", "only while such a method runs (Shop::Cart#sum); repeatable") do |name|
          add(:only_under, name)
        end
        parser.on("--depth N", Integer, "only so many calls deep") { |depth| @options[:depth] = depth }
        parser.on("--guided", "sample the command first (output discarded), then trace only under its heaviest " \
                              "methods") do
          @options[:guided] = true
        end
        parser.separator("")
        parser.separator("How to record")
        define_times(parser)
        define_collecting_options(parser)
        define_report_options(parser, WEIGHTS)
      end

      private

      def timed? = false

      def add(name, value)
        if value.empty? || value.match?(/[;\n]/)
          raise UsageError, "--#{name.to_s.tr("_", "-")} #{value.inspect}: must not be empty or hold ; or a line's end"
        end

        (@options[name] ||= []) << value
      end

      def size(text)
        digits, unit = text.match(/\A(\d+)([KMG]?)\z/i)&.captures
        raise UsageError, "--gc-memory #{text}: a number of bytes, with K, M or G behind it: 512M" unless digits

        digits.to_i * SIZES.fetch(unit.upcase, 1)
      end

      def target_options
        given = @options.slice(:gc, :gc_memory, :depth).compact
        lists = @options.slice(:path, :class, :only_under).transform_values { |words| words.join("\n") }
        usual = { cpu: true, objects: true, bytes: false }
        flags = usual.to_h { |name, on| [name, @options.fetch(name, on) ? 1 : 0] }
        { mode: "none", **super, **{ **flags, **given, **lists }.transform_keys { |name| :"trace.#{name}" } }
      end

      def check_report_options
        raise UsageError, "--depth #{@options[:depth]}: must be 1 or more" if @options[:depth]&.<(1)
        if @options[:gc_memory] && @options.fetch(:gc, "as-is") == "as-is"
          raise UsageError, "--gc-memory is for --gc off or --gc defer"
        end
        if @options[:guided] && @options[:only_under]
          raise UsageError, "--guided finds the methods itself: leave out --only-under"
        end

        weight = @options[:weight]
        if %w[cpu objects].include?(weight) && @options[weight.to_sym] == false
          raise UsageError, "--weight #{weight}: leave out --no-#{weight}"
        end
        raise UsageError, "--weight bytes: add --bytes" if weight == "bytes" && !@options[:bytes]

        super
      end

      def export_hint = %w[callgrind callgrind.out]

      # Where the time goes, found by sampling: these methods are worth a closer look. A command that was stopped or
      # failed is not started once more.
      def prepare(command)
        return unless @options.delete(:guided)

        require "pitwall/cli/recording/trace_guide"
        guide = TraceGuide.new(command).run
        return early_ending(guide.finished) if guide.finished.stopped_by || !guide.finished.status.success?
        if guide.methods.empty?
          raise CannotMeasure, "--guided: sampling saw no Ruby method; trace without it, or with --only-under METHOD"
        end

        @options[:only_under] = guide.methods
        @err.puts("pitwall: tracing under #{guide.methods.join(", ")}")
        nil
      end

      def early_ending(finished)
        status = finished.status
        how = "ended with status #{status.exitstatus}"
        how = "was ended by SIG#{Signal.signame(status.termsig)}" if status.signaled?
        how = "was stopped by SIG#{finished.stopped_by}" if finished.stopped_by
        @err.puts("pitwall: --guided: the sampling run (its output is discarded) #{how}: nothing was " \
                  "traced#{"; see it without --guided" unless finished.stopped_by}")
        status.success? ? Ending.killed_by(finished.stopped_by) : Ending.of(status)
      end
    end
  end
end
