# frozen_string_literal: true

require "shellwords"
require "pitwall/errors"
require "pitwall/cli/recording/name_sets"
require "pitwall/cli/recording/native_names"
require "pitwall/cli/support/output_file"
require "pitwall/record"
require "pitwall/analyse"
require "pitwall/views"

module Pitwall
  module CLI
    # What `report` and `export` share: which part of a recording is meant, and how it is read.
    module RecordingOptions
      WEIGHTS = %w[wall cpu captures wait calls objects bytes gc].freeze
      GC = { "happened" => :happened, "apart" => :apart, "caller" => :caller }.freeze

      # Adds what --label says to the options.
      # @raise [UsageError]
      #: (Hash[Symbol, untyped], String) -> void
      def self.label(options, text)
        name, value = text.split("=", 2)
        if value.nil? || name.empty?
          raise UsageError, "--label #{text}: write it as NAME=VALUE; pitwall report FILE --view labels lists them"
        end

        (options[:labels] ||= {})[name] = value
      end

      # Declares the filters of samples and stacks.
      # @param options [Hash] takes :time, :focus, :hide, :only
      # @param time [Boolean] false: what is recorded has no times
      #: (OptionParser, Hash[Symbol, untyped], ?time: bool) -> void
      def self.define_filters(parser, options, time: true)
        define_time(parser, options) if time
        define_names(parser, options)
        parser.on("--only WHOSE", "only frames of #{Analyse::Filters::ORIGINS.join(", ")} or a gem; what others cost " \
                                  "counts for the nearest such caller") { |whose| options[:only] = whose }
      end

      # The same without --only, which has another meaning where sides are measured.
      #: (OptionParser, Hash[Symbol, untyped]) -> void
      def self.define_sample_filters(parser, options)
        define_time(parser, options)
        define_names(parser, options)
      end

      #: (OptionParser, Hash[Symbol, untyped]) -> void
      def self.define_time(parser, options)
        parser.on("--time FROM..TO", "a part of the time since the start: 2s..5s, 500ms.., ..1m") do |text|
          options[:time] = Views::Filters.time(text)
        end
      end
      private_class_method :define_time

      #: (OptionParser, Hash[Symbol, untyped]) -> void
      def self.define_names(parser, options)
        parser.on("--focus NAME", "only samples whose stack has a method (or a class; a gem; a path, if it has a " \
                                  "slash; or @SET of .pitwall.yml); repeatable") { |name| add(options, :focus, name) }
        parser.on("--hide NAME", "leave frames out of the stacks; what they cost counts for their caller; " \
                                 "repeatable") { |name| add(options, :hide, name) }
      end

      #: (OptionParser, Hash[Symbol, untyped]) -> void
      def self.define_blackbox(parser, options)
        parser.on("--blackbox NAME", "fold everything below a method (or a class; a gem; a path, if it has a slash; " \
                                     "or @SET) into it; repeatable") { |name| add(options, :blackbox, name) }
      end

      #: (OptionParser, Hash[Symbol, untyped]) -> void
      def self.define_native(parser, options)
        parser.on("--native", "show native frames too (profile --native records them); otherwise their weight counts " \
                              "for the Ruby frame that called them") { options[:native] = true }
      end

      private_class_method :define_names

      # Adds a name, or the set of names that @NAME means.
      # @raise [UsageError] no such set
      #: (Hash[Symbol, untyped], Symbol, String) -> void
      def self.add(options, key, name) = (options[key] ||= []) << NameSets.expand("--#{key}", name)

      # Adds to an error about a name that native frames were folded.
      # @raise [UsageError]
      #: (bool?) { () -> untyped } -> untyped
      def self.telling_of_native(folded)
        yield
      rescue UsageError => error
        raise unless folded && error.message.match?(/\bno method .* in the recording/m)

        message = CLI.message(error)
        message += "; native frames are folded, --native shows them" unless message.include?("--native")
        raise UsageError, message
      end

      private

      def define_recording_options(parser)
        parser.separator("Which part of the recording")
        define_parts(parser)
        RecordingOptions.define_filters(parser, @options)
        RecordingOptions.define_blackbox(parser, @options)
        parser.on("--only-mine", "only the application's frames; what gems, Ruby and C functions cost counts for the " \
                                 "application's frame that called them") { @options[:only_mine] = true }
        RecordingOptions.define_native(parser, @options)
        parser.on("--gc HOW", GC, "garbage collection as it happened (default), apart, or charged to the caller: " \
                                  "#{GC.keys.join(", ")}") { |how| @options[:gc] = how }
        define_reading(parser)
      end

      def define_parts(parser)
        parser.on("--weight WEIGHT", WEIGHTS, "#{WEIGHTS.join(", ")} (wall)") { |weight| @options[:weight] = weight }
        parser.on("--thread NAME", "one thread, by name or id, as --view threads lists them") do |thread|
          @options[:thread] = thread
        end
        parser.on("--process PID", Integer, "one process") { |pid| @options[:process] = pid }
        parser.on("--state STATE", Analyse::States.words, "time spent #{Analyse::States.names.join(", ")}") do |state|
          @options[:state] = state
        end
        parser.on("--label NAME=VALUE", "what ran under a label, e.g. route=orders#show; repeatable") do |text|
          RecordingOptions.label(@options, text)
        end
        parser.on("--request N", Integer, "what was sampled in the Nth slowest request " \
                                          "(report --view requests lists them)") do |number|
          @options[:request] = number
        end
      end

      def define_reading(parser)
        parser.on("--salvage", "read what is left of a damaged recording") { @options[:salvage] = true }
        parser.on("--redact", "hash the paths outside the working directory and the values of labels; " \
                              "paths inside become relative") { @options[:redact] = true }
        NativeNames.define_options(parser, @options)
      end

      # Which part of the recording is meant.
      def narrowing = Views::Narrowing.new(@options)

      # @return [Array(Array<Record::Segment>, Array<Record::Warning>)] of all files together
      # @raise [UsageError] a file there isn't, a folder without recordings
      def read(paths)
        refuse_repeated(paths)
        skipped = []
        recordings = paths.flat_map do |path|
          folder?(path) ? all_in(path, skipped) : [Record.read(one(path), salvage: salvage?)]
        end
        refuse_mixture(recordings)
        segments = recordings.each_with_index.flat_map do |recording, number|
          recording.segments.map { |segment| segment.with(recording: number) }
        end
        segments, notes = NativeNames.call(segments, @options, shown: native? || page?)
        segments = Analyse::Redaction.new(base: Dir.pwd).call(segments) if @options[:redact]
        @folded = !native? && Analyse::NativeFrames.any?(segments)
        segments = Analyse::NativeFrames.fold(segments) if @folded && !page?
        [segments, recordings.flat_map(&:warnings) + skipped + notes]
      end

      # Are native frames shown?
      def native? = @options[:native] || @options[:only] == "native"

      # Is it read for the page, which folds native frames itself?
      def page? = @options[:format] == "html"

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

      # The recordings of a folder. One that can't be read at all does not cost the others where what is left of them is
      # asked for.
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
        if folder
          raise UsageError, "#{path}: no such file, but its parts are there: pitwall report " \
                            "#{Shellwords.escape(folder)}"
        end

        path
      end

      def in_folder(path)
        names = Dir.children(path).select { |name| name.end_with?(".pit") }
        found = names.map { |name| File.join(path, name) }.reject { |file| File.zero?(file) }
        raise UsageError, "#{path}: holds no recordings" if found.empty?

        found.sort_by { |file| [File.mtime(file), file] }
      end

      # "x-2.pit" may have been meant to come from x-2.parts or x.parts-2.
      def left_behind(path)
        stem = path.delete_suffix(".pit")
        ["#{stem}.parts", stem.sub(/-(\d+)\z/, '.parts-\1')].find { |folder| folder != stem && File.directory?(folder) }
      end

      # Traced times are of a program several times as slow: added to sampled ones they mean nothing.
      def refuse_mixture(recordings)
        traced, sampled = [:traced?, :sampled?].map do |kind|
          recordings.index { |recording| recording.segments.any?(&kind) }
        end
        return if traced.nil? || sampled.nil? || traced == sampled

        raise UsageError, "#{recordings[traced].path} is traced and #{recordings[sampled].path} sampled: their times " \
                          "can't be added up; look at each by itself"
      end
    end
  end
end
