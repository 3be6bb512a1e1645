# frozen_string_literal: true

require "fileutils"

module Pitwall
  class Launch
    # The folder into which each recorded process wrote its part, `PID-N.pit`, and its `messages`.
    #
    # A recording is the parts one after the other (doc/record-format.md). A process holds a lock on its part as long
    # as it lives; a part that is locked stays where it is.
    class Parts
      # `living`: the processes that still write; `missing_bytes`: what did not fit, still in the folder;
      # `problem`: why not; `older`: whether the recording is the one that was there before.
      Merged = Struct.new(:count, :living, :missing_bytes, :problem, :older, keyword_init: true) do
        # Whether the recording exists.
        #: () -> bool
        def any? = count.positive?
      end
      Part = Struct.new(:path, :pid, :number)
      private_constant :Part

      GRACE_S = 0.3 # a child that was interrupted together with the command needs a moment to stop its recording
      MESSAGES = "messages"
      # Where no file can be put beside the recording, or put in its place (a mount), it is written as it is.
      IN_PLACE = [Errno::EACCES, Errno::EPERM, Errno::EROFS, Errno::EBUSY].freeze
      BLOCK = 1 << 20
      private_constant :GRACE_S, :MESSAGES, :IN_PLACE, :BLOCK

      # @return [String] the folder
      attr_reader :path

      #: (String) -> void
      def initialize(path)
        @path = path
      end

      # What the recorded processes had to say, each line once.
      #: () -> Array[String]
      def messages
        File.readlines(File.join(path, MESSAGES), chomp: true, encoding: "UTF-8").map(&:scrub).reject(&:empty?).uniq
      rescue SystemCallError
        []
      end

      # Joins the parts of ended processes into the recording and deletes them, those of the command's own process
      # first. What can't be written stays.
      # @param recording [String] absolute path
      # @param first [Integer] process id of the command
      #: (String, first: Integer) -> Merged
      def merge_into(recording, first:)
        wait_for_stragglers
        living, ended = all.partition { |part| locked?(part.path) }
        empty, ended = ended.partition { |part| File.zero?(part.path) }
        empty.each { |part| remove(part.path) }
        ended.sort_by! { |part| [part.pid == first ? 0 : 1, part.pid, part.number] }
        merged = Merged.new(count: 0, living: living.map(&:pid).uniq, missing_bytes: 0)
        join(ended, recording, merged)
        merged.older = !merged.any? && File.size?(recording) ? true : false
        tidy if living.empty? && merged.problem.nil?
        merged
      end

      private

      def all
        Dir.children(path).filter_map do |name|
          _, pid, number = *name.match(/\A(\d+)-(\d+)\.pit\z/)
          Part.new(File.join(path, name), pid.to_i, number.to_i) if pid
        end
      rescue SystemCallError
        []
      end

      def wait_for_stragglers
        deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + GRACE_S
        while all.any? { |part| locked?(part.path) } && Process.clock_gettime(Process::CLOCK_MONOTONIC) < deadline
          sleep 0.02
        end
      end

      def locked?(file)
        File.open(file, "r+") { |io| !io.flock(File::LOCK_EX | File::LOCK_NB) }
      rescue SystemCallError
        false
      end

      def join(parts, recording, merged)
        parts.each do |part|
          merged.count.zero? ? place(part.path, recording) : append(part.path, recording)
          merged.count += 1
        rescue SystemCallError => error
          merged.problem ||= SystemCallError.new(error.errno).message
          merged.missing_bytes += File.size?(part.path).to_i
        end
      end

      # Renamed where that is possible: it needs no room and can't fail half-way. However it is done, what was there stays until the
      # new one is whole.
      def place(part, recording)
        return append(part, recording) if File.exist?(recording) && !File.file?(recording)

        File.rename(part, recording)
        share(recording)
      rescue Errno::EXDEV
        replace(part, recording)
      rescue *IN_PLACE
        overwrite(part, recording)
      end

      # What is in the recording is no loss when it can't be removed, nor is a recording that only its owner may read.
      def remove(part)
        File.unlink(part)
      rescue SystemCallError
        nil
      end

      def share(file)
        File.chmod(0o666 & ~File.umask, file)
      rescue SystemCallError
        nil
      end

      # From another file system: beside it first.
      def replace(part, recording)
        near = File.join(File.dirname(recording), ".pitwall-#{Process.pid}.part")
        copy(part, near)
        share(near)
        File.rename(near, recording)
        remove(part)
      rescue *IN_PLACE
        overwrite(part, recording)
      ensure
        FileUtils.rm_f(near) if near
      end

      # Behind the older one first: whether there is room shows then. Moved to the front it needs none.
      def overwrite(part, recording)
        older = File.size?(recording)
        copy(part, recording)
        move_to_front(recording, older) if older
        remove(part)
      end

      def move_to_front(recording, from)
        File.open(recording, "r+b") do |file|
          size = file.size - from
          at = 0
          at += file.pwrite(file.pread([BLOCK, size - at].min, from + at), at) while at < size
          file.truncate(size)
        end
      end

      def append(part, recording)
        copy(part, recording)
        remove(part)
      end

      # A part goes in whole or not at all: what was written of it is taken back, and the part is kept.
      def copy(part, recording)
        File.open(recording, File::WRONLY | File::CREAT | File::APPEND | File::BINARY) do |out|
          regular = out.stat.file?
          before = regular ? out.size : nil
          begin
            File.open(part, "rb") { |io| IO.copy_stream(io, out) }
          rescue SystemCallError
            out.truncate(before) if regular
            raise
          end
        end
      end

      def tidy
        FileUtils.rm_f(File.join(path, MESSAGES))
        Dir.rmdir(path)
      rescue SystemCallError
        nil # a process that started late has put something there
      end
    end
  end
end
