# frozen_string_literal: true

require "pitwall/cli/support/command"
require "pitwall/doctor"

module Pitwall
  module CLI
    # `pitwall doctor`: what can be measured here. The output has six lines when nothing restricts a verb.
    class Doctor < Command
      FORMATS = %w[text json].freeze
      COLOURS = { ok: :green, note: :cyan, limited: :yellow, no: :red }.freeze
      INDENT = 28 # column of the findings
      private_constant :FORMATS, :COLOURS, :INDENT

      class << self
        #: () -> String
        def summary = "what this machine, Ruby and container can measure, and the mend"

        #: () -> Array[[String, String]]
        def examples
          [
            ["pitwall doctor", "does it work here, and how?"],
            ["pitwall doctor --all", "all checks"]
          ]
        end
      end

      #: (OptionParser) -> void
      def define_options(parser)
        parser.on("--all", "show all checks") { @options[:all] = true }
        parser.on("--format FORMAT", FORMATS, "#{FORMATS.join(", ")} (text)") { |format| @options[:format] = format }
      end

      #: (Array[String]) -> Integer
      def run(args)
        raise UsageError, "doctor takes no #{args.first}" unless args.empty?

        doctor = Pitwall::Doctor.new(streams: { "standard output" => @out, "standard error" => @err })
        @options[:format] == "json" ? print_json(doctor) : print_text(doctor)
        doctor.verdict("profile") == "no" ? Status::CANNOT_MEASURE : Status::OK
      end

      private

      def print_json(doctor)
        require "json"
        @out.puts(JSON.pretty_generate(doctor.to_h))
      end

      def print_text(doctor)
        doctor.commands.each do |command|
          verdict = doctor.verdict(command)
          colour = { "works" => :green, "limited" => :yellow, "no" => :red }.fetch(verdict)
          @out.puts("pitwall #{command}: #{palette.decorate(VERDICTS.fetch(verdict), colour)}")
        end
        return doctor.checks.each { |check| print_check(check) } if @options[:all]

        shown, others = doctor.checks.partition { |check| check.restricts? || ALWAYS.include?(check.name) }
        shown.each { |check| print_check(check, details: check.restricts?) }
        @out.puts("#{others.size} more checks restrict nothing: pitwall doctor --all")
      end

      ALWAYS = %w[ruby mode cores].freeze
      private_constant :ALWAYS

      VERDICTS = { "works" => "works here", "limited" => "works here, with the limits below",
                   "no" => "does not work here" }.freeze
      private_constant :VERDICTS

      # @param details whether to print the meaning and the remedy too
      def print_check(check, details: true)
        state = palette.decorate(check.state.to_s.ljust(8), COLOURS.fetch(check.state))
        texts = [check.value.to_s]
        texts.push(*check.meaning, *(check.mend && "→ #{check.mend}")) if details
        first, *more = texts.flat_map { |text| wrap(text) }
        @out.puts("#{state}#{check.name.ljust(INDENT - 8)}#{first}".rstrip)
        more.each { |line| @out.puts((" " * INDENT) + line) }
      end

      def wrap(text)
        room = [width - INDENT, 30].max
        text.scan(/\S.{0,#{room - 1}}(?=\s|\z)|\S+/)
      end
    end
  end
end
