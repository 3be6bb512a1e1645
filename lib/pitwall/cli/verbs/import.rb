# frozen_string_literal: true

require "pitwall/cli/support/command"
require "pitwall/cli/support/output_file"
require "pitwall/launch/perf"
require "pitwall/record/import"
require "pitwall/show"

module Pitwall
  module CLI
    # `pitwall import FILE --out OUT.pit`: another tool's profile as a recording.
    class Import < Command
      FORMATS = Record::Import.names
      private_constant :FORMATS

      class << self
        #: () -> String
        def summary = "makes a recording of another tool's profile"

        #: () -> Array[[String, String]]
        def examples
          [
            ["pitwall import stackprof.json --out a.pit", "then pitwall report a.pit"],
            ["pitwall import heap.pb.gz --type inuse_space --out a.pit", "one of several figures"]
          ]
        end

        #: () -> String
        def usage = "FILE --out OUT.pit [options]"
      end

      #: (OptionParser) -> void
      def define_options(parser)
        parser.on("--out OUT.pit", "the recording to write") { |file| @options[:out] = file }
        parser.on("--from FORMAT", FORMATS, "take this format, don't recognise it: #{FORMATS.join(", ")}") do |format|
          @options[:from] = format
        end
        parser.on("--type NAME", "which figure of the file to take, where it has several that don't fit together " \
                                 "(pprof, callgrind, memory-profiler, otlp), or doesn't say what it counts " \
                                 "(collapsed)") do |name|
          @options[:type] = name
        end
        parser.on("--max-bytes N", Integer, "read a file of up to N bytes, decompressed, into memory " \
                                            "(#{Record::Import::MAX_BYTES}; pprof, otlp: " \
                                            "#{Record::Import::MAX_PROTOBUF_BYTES})") do |bytes|
          @options[:max_bytes] = bytes
        end
      end

      #: (Array[String]) -> Integer
      def run(files)
        check(files)
        profile = opened(files.first) do |opened|
          OutputFile.write(@options[:out]) { |out| opened.write_to(out) }
          opened
        end
        profile.warnings.each { |warning| @err.puts("pitwall: #{Show::Text.line("#{files.first}: #{warning}")}") }
        @out.puts("#{Show::Text.line(@options[:out])}: imported from #{profile.title}, #{holds(profile)}")
        Status::OK
      end

      private

      # perf's own file becomes text by perf itself, where perf is installed.
      def opened(file)
        options = @options.slice(:from, :type, :max_bytes)
        return yield Record::Import.open(file, **options) unless Launch::Perf.path && Launch::Perf.file?(file)

        Launch::Perf.script(file) { |text| yield Record::Import.open(file, **options, from: "perf-script", io: text) }
      end

      # @raise [UsageError]
      def check(files)
        out = @options[:out]
        raise UsageError, "no file: pitwall import FILE --out OUT.pit" if files.empty?
        raise UsageError, "#{files[1]}: import takes one file at a time" if files.size > 1
        raise UsageError, "nowhere to write: add --out OUT.pit" unless out
        raise UsageError, "--out -: recordings are files: name one, --out OUT.pit" if out == "-"
        if @options.fetch(:max_bytes, 1) < 1
          raise UsageError, "--max-bytes #{@options[:max_bytes]}: must be 1 or more"
        end

        OutputFile.check(out, files)
      end

      # What the recording holds.
      def holds(profile)
        counts = { "row" => :rows, "call path" => :calls, "site" => :sites }
        found = counts.filter_map do |noun, what|
          number = profile.counts.fetch(what)
          Show::Units.things(number, noun) if number.positive?
        end
        found << "nothing" if found.empty?
        "#{found.join(", ")} of #{Show::Units.things(profile.counts[:threads], "thread")}"
      end
    end
  end
end
