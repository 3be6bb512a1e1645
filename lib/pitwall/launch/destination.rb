# frozen_string_literal: true

require "fileutils"
require "tmpdir"
require "pitwall/errors"

module Pitwall
  class Launch
    # The place of a recording. It is chosen, and tried by writing, before the command starts. Otherwise a user would
    # learn after an hour's run that nothing could be written.
    class Destination
      FOLDER = ".pitwall"
      PROBE_BYTES = 4096 # one block, which a full disk refuses
      # Words of a command line that do not name the program.
      LAUNCHERS = /\A(?:-.*|\w+=.*|env|time|nice|ruby[\d.]*|bundle|exec|sh|bash)\z/.freeze
      # Options of ruby and sh whose next word is a program's text, a folder or a library.
      VALUED = /\A-(?:[nplasw]*e|[cIrCE])\z/.freeze
      # A folder that can't be made beside a recording that can be written: the folder around is not writable, or the
      # name has room for ".pit" but not for ".parts".
      NO_FOLDER = [Errno::EACCES, Errno::EPERM, Errno::EROFS, Errno::ENAMETOOLONG].freeze
      private_constant :PROBE_BYTES, :LAUNCHERS, :VALUED, :NO_FOLDER

      # @return [String] absolute path of the recording; an existing file will be replaced
      attr_reader :recording
      # @return [String] absolute path of a new folder for the parts, which only the user can read
      attr_reader :parts
      # @return [Array<String>] notes for the user
      attr_reader :notes

      # Makes the folders.
      # @param command [Array<String>] the recording is named after it
      # @param file [String, nil] the recording's path; nil: a dated file below the working directory
      # @raise [UsageError] nothing can be written there
      #: (Array[String], ?file: String?, ?now: Time) -> void
      def initialize(command, file: nil, now: Time.now)
        @notes = []
        @name = "#{now.strftime("%Y%m%d-%H%M%S")}-#{name_of(command)}"
        file ? use(file) : use_default
      end

      # Removes the folders after a command that could not be started.
      #: () -> void
      def discard
        Dir.rmdir(@parts)
        tidy
      rescue SystemCallError
        nil # the folder is not empty
      end

      # Removes the temporary folder if it is empty.
      #: () -> void
      def tidy
        Dir.rmdir(@folder) if @folder
      rescue SystemCallError
        nil
      end

      private

      # `bundle exec rails runner 1` → "rails"
      def name_of(command)
        command = command.map(&:scrub)
        word = command.each_with_index.find { |each, at| !launcher?(each) && !value?(command, at) }&.first
        word ||= command.first
        name = File.basename(word, ".rb").gsub(/[^\w.-]+/, "-")[0, 40]
        name.match?(/\w/) ? name : "command"
      end

      def launcher?(word) = word.match?(LAUNCHERS) || File.basename(word).match?(LAUNCHERS)

      # Whether a word is the value of the option before it.
      def value?(command, at) = at.positive? && command[at - 1].match?(VALUED)

      def use(file)
        raise UsageError, "--record needs a name: --record FILE.pit" if file.empty?

        @recording = real_path(file)
        return use_device if File.exist?(@recording) && !File.file?(@recording)

        refuse_foreign_file
        # Opening for append tests the permissions and changes nothing: an existing recording stays until there
        # is a new one.
        existed = File.exist?(@recording)
        File.open(@recording, File::WRONLY | File::CREAT | File::APPEND) { nil }
        File.unlink(@recording) unless existed
        make_parts_near
      rescue SystemCallError => error
        raise UsageError.new("cannot write #{file}: #{reason(error)}", advice: { another_recording: nil })
      end

      # Parts beside the recording need only be renamed. If that disk is full, another place for the
      # parts would not help.
      def make_parts_near
        @parts = make_parts(@recording.delete_suffix(".pit"))
      rescue *NO_FOLDER
        make_parts_elsewhere
      end

      # For a pipe or a terminal: the parts lie elsewhere, and the finished recording is written to it.
      def use_device
        raise Errno::EISDIR if File.directory?(@recording)

        File.open(@recording, File::WRONLY | File::NONBLOCK) { nil } unless File.pipe?(@recording)
        make_parts_elsewhere
      end

      def make_parts_elsewhere
        @folder = Dir.mktmpdir("pitwall-")
        @parts = make_parts(File.join(@folder, @name))
      end

      def use_default
        folder = File.join(Dir.pwd, FOLDER)
        Dir.mkdir(folder) unless File.directory?(folder)
        ignore = File.join(folder, ".gitignore")
        File.write(ignore, "*\n") unless File.exist?(ignore)
        place_in(folder)
      rescue SystemCallError => error
        place_in_temporary_folder("#{FOLDER}/ can't be written here (#{reason(error)})")
      end

      def place_in_temporary_folder(why)
        @folder = Dir.mktmpdir("pitwall-")
        @notes << "#{why}: recording to #{@folder}/"
        place_in(@folder)
      rescue SystemCallError, ArgumentError => error
        raise UsageError.new("#{why}, nor can a temporary folder (#{reason(error)})",
                             advice: { place_of_recording: nil })
      end

      def place_in(folder)
        @parts = make_parts(File.join(folder, @name)) { |parts| !File.exist?(recording_of(parts)) }
        @recording = recording_of(@parts)
      end

      # "x.parts-2" → "x-2.pit"
      def recording_of(parts) = parts.sub(/\.parts(-\d+)?\z/) { "#{Regexp.last_match(1)}.pit" }

      # Making the folder reserves the recording's name: of two processes that try the same name, one succeeds.
      def make_parts(stem)
        (1..).each do |number|
          parts = number == 1 ? "#{stem}.parts" : "#{stem}.parts-#{number}"
          Dir.mkdir(parts, 0o700)
          next Dir.rmdir(parts) if block_given? && !yield(parts)

          probe(parts)
          return parts
        rescue Errno::EEXIST
          next
        end
      end

      def probe(folder)
        file = File.join(folder, "probe")
        File.binwrite(file, "\0" * PROBE_BYTES)
        File.unlink(file)
      rescue SystemCallError
        FileUtils.rm_rf(folder)
        raise
      end

      # Guards against a mistyped `--record x.rb`.
      def refuse_foreign_file
        return unless File.size?(@recording)
        return if File.binread(@recording, 8) == "PITWALL "

        raise UsageError.new("#{@recording} exists and is not a recording", advice: { another_recording: nil })
      end

      # The path of the file that a link leads to, so that the link itself stays.
      def real_path(file)
        path = File.expand_path(file)
        File.exist?(path) ? File.realpath(path) : path
      end

      def reason(error) = error.is_a?(SystemCallError) ? SystemCallError.new(error.errno).message : error.message
    end
  end
end
