# frozen_string_literal: true

require "pitwall/analyse"
require "pitwall/cli/recording/syscall_workers"
require "pitwall/record"
require "pitwall/views"

module Pitwall
  module CLI
    # What the verb `syscalls` reads: the patterns in force, and logs.
    module SyscallSources
      FILE = ".pitwall.yml"
      # A user's file is never so long.
      LONGEST = 1 << 20
      private_constant :FILE, :LONGEST

      module_function

      # @param options [Hash] takes :patterns, :limit
      #: (OptionParser, Hash[Symbol, untyped]) -> void
      def define_options(parser, options)
        parser.on("--patterns NAMES", Array, "study (the seven of 2017), all, or names such as scan,rrpi " \
                                             "(all; of logs without results study)") do |names|
          options[:patterns] = names
        end
        parser.on("--limit N", Integer, "rows in each table") { |limit| options[:limit] = limit }
      end

      # Pitwall's table, with what `.pitwall.yml` in the working directory adds.
      # @param names [Array<String>, nil] those asked for
      # @param study [Boolean] the log has only what the study's had
      # @raise [UsageError] an entry that can't be read, a pattern there isn't
      #: (?Array[String]?, ?study: bool) -> Analyse::SyscallPatterns
      def patterns(names = nil, study: false)
        study = names == ["study"] if names
        names = nil if [["study"], ["all"]].include?(names)
        Analyse::SyscallPatterns.new(user: own, source: FILE, study: study, only: names)
      end

      # @api private
      def own
        return nil unless File.file?(FILE)

        require "psych"
        raise UsageError, "#{FILE}: longer than #{LONGEST} bytes" if File.size(FILE) > LONGEST

        whole = Psych.safe_load(File.read(FILE, encoding: "UTF-8"), filename: FILE) || {}
        own_patterns(whole)
      rescue Psych::Exception, ArgumentError => error
        raise UsageError, "#{FILE}: #{error.message.lines.first.to_s.strip.sub(/\A\(\S+\): /, "")}"
      rescue SystemCallError => error
        raise UsageError, "#{FILE}: cannot be read: #{SystemCallError.new(error.errno).message}"
      end

      # @api private
      def own_patterns(whole)
        raise UsageError, "#{FILE}: a table is wanted, such as syscalls: { patterns: [] }" unless whole.is_a?(Hash)

        part = whole["syscalls"] || {}
        unless part.is_a?(Hash)
          raise UsageError, "#{FILE}: syscalls: a table is wanted, such as { patterns: [] }"
        end

        unknown = part.keys - ["patterns"]
        raise UsageError, "#{FILE}: syscalls: unknown key #{unknown.first}; there is patterns" if unknown.any?

        part["patterns"]
      end

      # Of a log.
      # @param names [Array<String>, nil] patterns asked for
      # @raise [BadRecording] it holds no calls
      #: (String, Array[String]?) ?{ (String) -> void } -> Views::SyscallReport
      def of_log(file, names, &collapsed)
        log = Record::SyscallLog.open(file)
        table = patterns(names, study: log.bare?)
        report = Analyse::SyscallReport.of(log, patterns: table, &collapsed) if collapsed
        report ||= SyscallWorkers.report(log, table)
        raise BadRecording, "#{log.name}: holds no system calls that could be read" if report.calls.zero?

        name = log.name.delete_prefix("#{Dir.pwd}/")
        Views::SyscallReport.new(report: report, name: name, format: log.format, file: file, warnings: log.warnings)
      end
    end
    private_constant :SyscallSources
  end
end
