# frozen_string_literal: true

require "fileutils"
require "tmpdir"
require "pitwall/errors"

module Pitwall
  class Launch
    # Where a recording goes, found out (and tried) before the command starts: nobody should learn after an hour's
    # run that there was no place to write to.
    class Destination
      FOLDER = ".pitwall"
      PROBE_BYTES = 4096 # one block: a full disk refuses it
      # Words of a command line that say little about what is run.
      LAUNCHERS = /\A(?:-.*|\w+=.*|env|time|nice|ruby[\d.]*|bundle|exec|sh|bash)\z/.freeze
      VALUED = /\A-(?:[nplasw]*e|[cIrCE])\z/.freeze # what follows these options of ruby and sh is a program, a folder, a library
      # A folder that may not be written, in which a file may be; a name that has room for ".pit" and not for ".parts".
      NO_FOLDER = [Errno::EACCES, Errno::EPERM, Errno::EROFS, Errno::ENAMETOOLONG].freeze
      private_constant :PROBE_BYTES, :LAUNCHERS, :VALUED, :NO_FOLDER

      # @return [String] absolute path of the recording; there is no such file yet, or it will be replaced
      attr_reader :recording
      # @return [String] absolute path of a fresh folder, readable by the user only, for the parts
      attr_reader :parts
      # @return [Array<String>] what the user should know
      attr_reader :notes

      # Makes the folders.
      # @param file [String, nil] the recording's path; nil: a dated file below the working directory
      # @raise [UsageError] when nothing can be written there
      #: (Array[String], ?file: String?, ?now: Time) -> void
      def initialize(command, file: nil, now: Time.now)
        @notes = []
        @name = "#{now.strftime("%Y%m%d-%H%M%S")}-#{name_of(command)}"
        file ? use(file) : use_default
      end

      # Tidies up after a command that never ran.
      #: () -> void
      def discard
        Dir.rmdir(@parts)
        tidy
      rescue SystemCallError
        nil # something else is in there
      end

      # Removes the temporary folder where nothing was left in it.
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
        words = command.each_with_index.reject { |word, at| word.match?(LAUNCHERS) || File.basename(word).match?(LAUNCHERS) || (at.positive? && command[at - 1].match?(VALUED)) }
        word = words.empty? ? command.first : words.first.first
        name = File.basename(word, ".rb").gsub(/[^\w.-]+/, "-")[0, 40]
        name.match?(/\w/) ? name : "command"
      end

      def use(file)
        raise UsageError, "--record needs a name: --record FILE.pit" if file.empty?

        @recording = real_path(file)
        return use_device if File.exist?(@recording) && !File.file?(@recording)

        refuse_foreign_file
        # Opened as it will be, and left as it is: an existing recording stays until there is a new one.
        existed = File.exist?(@recording)
        File.open(@recording, File::WRONLY | File::CREAT | File::APPEND) { nil }
        File.unlink(@recording) unless existed
        make_parts_near
      rescue SystemCallError => error
        raise UsageError, "cannot write #{file}: #{reason(error)}; name another with --record FILE.pit"
      end

      # Beside the recording, for then they only have to be renamed. Where that disk is full there is no point in another.
      def make_parts_near
        @parts = make_parts(@recording.delete_suffix(".pit"))
      rescue *NO_FOLDER
        make_parts_elsewhere
      end

      # A pipe or a terminal: it gets the finished recording, the parts are kept elsewhere.
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
        raise UsageError, "#{why}, nor can a temporary folder (#{reason(error)}); name a place with --record FILE.pit"
      end

      def place_in(folder)
        @parts = make_parts(File.join(folder, @name)) { |parts| !File.exist?(recording_of(parts)) }
        @recording = recording_of(@parts)
      end

      # "x.parts-2" → "x-2.pit"
      def recording_of(parts) = parts.sub(/\.parts(-\d+)?\z/) { "#{Regexp.last_match(1)}.pit" }

      # The folder's name is what makes a recording's name its own: of two processes one gets it.
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

      # `--record x.rb` is a slip of the hand.
      def refuse_foreign_file
        return unless File.size?(@recording)
        return if File.binread(@recording, 8) == "PITWALL "

        raise UsageError, "#{@recording} exists and is not a recording; name another with --record FILE.pit"
      end

      # A link stays a link to where it points.
      def real_path(file)
        path = File.expand_path(file)
        File.exist?(path) ? File.realpath(path) : path
      end

      def reason(error) = error.is_a?(SystemCallError) ? SystemCallError.new(error.errno).message : error.message
    end
  end
end
