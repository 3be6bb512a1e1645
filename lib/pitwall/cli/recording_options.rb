# frozen_string_literal: true

require "shellwords"
require "pitwall/errors"
require "pitwall/cli/output_file"
require "pitwall/record"
require "pitwall/analyse"

module Pitwall
  module CLI
    # What `report` and `export` share: which part of a recording is meant, and how it is read.
    module RecordingOptions
      WEIGHTS = %w[wall cpu captures wait calls objects bytes gc].freeze
      STATES = %w[running gvl blocked unknown off-cpu].freeze
      # A folder of parts that were not joined.
      PARTS = %r{\.parts(-\d+)?/?\z}.freeze
      GC = { "happened" => :happened, "apart" => :apart, "caller" => :caller }.freeze

      private

      def define_recording_options(parser)
        parser.separator("Which part of the recording")
        parser.on("--weight WEIGHT", WEIGHTS, "#{WEIGHTS.join(", ")} (wall)") { |weight| @options[:weight] = weight }
        parser.on("--thread NAME", "one thread, by name or id") { |thread| @options[:thread] = thread }
        parser.on("--process PID", Integer, "one process") { |pid| @options[:process] = pid }
        parser.on("--state STATE", STATES, "time spent #{STATES.join(", ")}") { |state| @options[:state] = state }
        parser.on("--blackbox NAME", "fold everything below a method (or a path, if it has a slash) into it; repeatable") { |name| (@options[:blackbox] ||= []) << name }
        parser.on("--gc HOW", GC, "garbage collection as it happened (default), apart, or charged to the caller: #{GC.keys.join(", ")}") { |how| @options[:gc] = how }
        parser.on("--salvage", "read what is left of a damaged recording") { @options[:salvage] = true }
        parser.on("--redact", "hash the paths outside the working directory, make those inside relative") { @options[:redact] = true }
      end

      # @param segments [Array<Record::Segment>] to leave their idle threads out; none: nothing is left out
      def selection(segments = [])
        idle = Analyse::IdleThreads.find(segments) unless @options[:idle] || @options[:thread] || @options[:state]
        state = @options[:state] && Analyse::States.number(@options[:state])
        Analyse::Selection.new(thread: @options[:thread], process: @options[:process], state: state, without: idle)
      end

      # @return [Array(Array<Record::Segment>, Array<Record::Warning>)] of all files together
      # @raise [UsageError] a file there isn't, a folder without recordings
      def read(paths)
        recordings = paths.flat_map { |path| parts(path) }.map { |path| Record.read(path, salvage: @options.fetch(:salvage, false)) }
        refuse_mixture(recordings)
        segments = recordings.each_with_index.flat_map { |recording, number| recording.segments.map { |segment| segment.with(recording: number) } }
        segments = Analyse::Redaction.new(base: Dir.pwd).call(segments) if @options[:redact]
        [segments, recordings.flat_map(&:warnings)]
      end

      # What a killed pitwall leaves behind is the folder of the parts that it would have joined.
      def parts(path)
        return in_folder(path) if path.match?(PARTS) && File.directory?(path)

        folder = left_behind(path) unless path == "-" || File.exist?(path)
        raise UsageError, "#{path}: no such file, but its parts are there: pitwall report #{Shellwords.escape(folder)}" if folder

        [path]
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
