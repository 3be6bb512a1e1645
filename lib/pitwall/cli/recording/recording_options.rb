# frozen_string_literal: true

require "shellwords"
require "pitwall/errors"
require "pitwall/cli/support/output_file"
require "pitwall/record"
require "pitwall/analyse"

module Pitwall
  module CLI
    # What `report` and `export` share: which part of a recording is meant, and how it is read.
    module RecordingOptions
      WEIGHTS = %w[wall cpu captures wait calls objects bytes gc].freeze
      GC = { "happened" => :happened, "apart" => :apart, "caller" => :caller }.freeze

      # Options that are kept under another name than theirs.
      OPTION_NAMES = { labels: "label", source: "no-source" }.freeze
      private_constant :OPTION_NAMES

      # An option as one types it.
      #: (Symbol) -> String
      def self.option_name(key) = "--#{OPTION_NAMES.fetch(key) { key.to_s.tr("_", "-") }}"

      # Adds what --label says to the options.
      # @raise [UsageError]
      #: (Hash[Symbol, untyped], String) -> void
      def self.label(options, text)
        name, value = text.split("=", 2)
        raise UsageError, "--label #{text}: write it as NAME=VALUE; pitwall report FILE --view labels lists them" if value.nil? || name.empty?

        (options[:labels] ||= {})[name] = value
      end

      private

      def define_recording_options(parser)
        parser.separator("Which part of the recording")
        parser.on("--weight WEIGHT", WEIGHTS, "#{WEIGHTS.join(", ")} (wall)") { |weight| @options[:weight] = weight }
        parser.on("--thread NAME", "one thread, by name or id, as --view threads lists them") { |thread| @options[:thread] = thread }
        parser.on("--process PID", Integer, "one process") { |pid| @options[:process] = pid }
        parser.on("--state STATE", Analyse::States.words, "time spent #{Analyse::States.names.join(", ")}") { |state| @options[:state] = state }
        parser.on("--label NAME=VALUE", "what ran under a label, e.g. route=orders#show; repeatable") { |text| RecordingOptions.label(@options, text) }
        parser.on("--request N", Integer, "what was sampled in the Nth slowest request (report --view requests lists them)") { |number| @options[:request] = number }
        parser.on("--blackbox NAME", "fold everything below a method (or a path, if it has a slash) into it; repeatable") { |name| (@options[:blackbox] ||= []) << name }
        parser.on("--only-mine", "only the application's frames; what gems, Ruby and C functions cost counts for the application's frame that called them") { @options[:only_mine] = true }
        parser.on("--gc HOW", GC, "garbage collection as it happened (default), apart, or charged to the caller: #{GC.keys.join(", ")}") { |how| @options[:gc] = how }
        parser.on("--salvage", "read what is left of a damaged recording") { @options[:salvage] = true }
        parser.on("--redact", "hash the paths outside the working directory and the values of labels; paths inside become relative") { @options[:redact] = true }
      end

      # Segments narrowed to the request asked for, and the row of it.
      # @raise [UsageError] no such request, or an option that it leaves nothing to choose for
      #: (Array[Record::Segment], ?Array[Symbol]) -> [Array[Record::Segment], Analyse::Requests::Row]
      def of_request(segments, refused = [])
        odd = [*refused, *%i[process thread labels].select { |name| @options[name] }.map { |name| RecordingOptions.option_name(name) }].first
        raise UsageError, "--request #{@options[:request]} is one request in one thread: leave out #{odd}" if odd

        requests = Analyse::Requests.new(segments)
        row = requests.row(@options[:request])
        [[requests.narrowed(row)], row]
      end

      # Whether objects were followed and nothing else: then they are what trees weigh.
      def only_objects?(segments) = segments.any?(&:allocation_totals) && segments.none? { |segment| segment.sampled? || segment.traced? }

      # @param segments [Array<Record::Segment>] to leave their idle threads out; none: nothing is left out
      def selection(segments = [])
        idle = Analyse::IdleThreads.find(segments) unless @options[:idle] || @options[:thread] || @options[:state] || @options[:labels]
        state = @options[:state] && Analyse::States.number(@options[:state])
        labels = @options[:redact] ? @options[:labels]&.transform_values { |value| Analyse::Redaction.label(value) } : @options[:labels]
        Analyse::Selection.new(thread: @options[:thread], process: @options[:process], state: state, labels: labels, without: idle)
      end

      # An empty report would be taken for a program that never waited.
      # @raise [UsageError] the recording can't tell the state asked for
      def check_state(segments)
        state = @options[:state] or return
        sampled = segments.select(&:sampled?)
        raise UsageError, "--state #{state}: the recording has no samples, and only these have states: leave it out" if sampled.empty?
        return if sampled.any? { |segment| segment.header.thread_states? || segment.tallies.any? { |tally| tally.state == Analyse::States.number(state) } }

        ruby = sampled.first.header.ruby["version"]
        raise UsageError, "--state #{state}: #{ruby ? "Ruby #{ruby}" : "what was recorded"} told no thread states, as Ruby 3.2 and newer do: leave it out, or record with such a Ruby"
      end

      # @return [Array(Array<Record::Segment>, Array<Record::Warning>)] of all files together
      # @raise [UsageError] a file there isn't, a folder without recordings
      def read(paths)
        refuse_repeated(paths)
        skipped = []
        recordings = paths.flat_map { |path| folder?(path) ? all_in(path, skipped) : [Record.read(one(path), salvage: salvage?)] }
        refuse_mixture(recordings)
        segments = recordings.each_with_index.flat_map { |recording, number| recording.segments.map { |segment| segment.with(recording: number) } }
        segments = Analyse::Redaction.new(base: Dir.pwd).call(segments) if @options[:redact]
        [segments, recordings.flat_map(&:warnings) + skipped]
      end

      def salvage? = @options.fetch(:salvage, false)

      # Of continuous recording, or what a killed pitwall leaves behind, the parts that it would have joined.
      def folder?(path) = path != "-" && File.directory?(path)

      # @raise [UsageError] it would count twice
      def refuse_repeated(paths)
        paths.each_with_object({}) do |path, seen|
          stat = File.stat(path) if File.exist?(path)
          file = stat ? [stat.dev, stat.ino] : path
          raise UsageError, "#{path}: is named twice, and would count twice: name it once" if seen[file]

          seen[file] = true
        end
      end

      # The recordings of a folder. One that can't be read at all does not cost the others where what is left of them is asked for.
      # @raise [BadRecording]
      def all_in(path, skipped)
        read = in_folder(path).filter_map do |file|
          Record.read(file, salvage: salvage?)
        rescue BadRecording => error
          others = "; --salvage reads the others" unless error.advice.key?(:salvage)
          raise BadRecording, "#{CLI.message(error)}#{others}" unless salvage?

          skipped << Record::Warning.new(code: :skipped, message: "skipped #{error.message}")
          nil
        end
        read.empty? ? raise(BadRecording, "#{path}: no recording in it could be read; #{skipped.first&.message}") : read
      end

      # @return [String] the path
      # @raise [UsageError]
      def one(path)
        folder = left_behind(path) unless path == "-" || File.exist?(path)
        raise UsageError, "#{path}: no such file, but its parts are there: pitwall report #{Shellwords.escape(folder)}" if folder

        path
      end

      def in_folder(path)
        found = Dir.children(path).select { |name| name.end_with?(".pit") }.map { |name| File.join(path, name) }.reject { |file| File.zero?(file) }
        found.empty? ? raise(UsageError, "#{path}: holds no recordings") : found.sort_by { |file| [File.mtime(file), file] }
      end

      # "x-2.pit" may have been meant to come from x-2.parts or x.parts-2.
      def left_behind(path)
        stem = path.delete_suffix(".pit")
        ["#{stem}.parts", stem.sub(/-(\d+)\z/, '.parts-\1')].find { |folder| folder != stem && File.directory?(folder) }
      end

      # Traced times are of a program several times as slow: added to sampled ones they mean nothing.
      def refuse_mixture(recordings)
        traced, sampled = [:traced?, :sampled?].map { |kind| recordings.index { |recording| recording.segments.any?(&kind) } }
        return if traced.nil? || sampled.nil? || traced == sampled

        raise UsageError, "#{recordings[traced].path} is traced and #{recordings[sampled].path} sampled: their times can't be added up; look at each by itself"
      end
    end
  end
end
