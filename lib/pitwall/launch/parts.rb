# frozen_string_literal: true

require "fileutils"

module Pitwall
  class Launch
    # The folder with the parts, `PID-N.pit`, of each recorded process, and with their `messages`.
    #
    # A recording is the concatenation of the parts (doc/record-format.md). A process holds a lock on its part as long
    # as it lives. A locked part stays in the folder.
    class Parts
      # count:         parts that are in the recording
      # living:        ids of the processes that still write
      # missing_bytes: size of the parts that could not be written; they stay in the folder
      # problem:       why they could not be written, or nil
      # older:         whether the recording is an older one, because no part was written
      Merged = Struct.new(:count, :living, :missing_bytes, :problem, :older, keyword_init: true) do
        # Whether there is a new recording.
        #: () -> bool
        def any? = count.positive?
      end
      Part = Struct.new(:path, :pid, :number)
      private_constant :Part

      GRACE_S = 0.3 # for a child that was interrupted together with the command, to stop its recording
      MESSAGES = "messages"
      # Errors after which the recording's own file is overwritten: no file can be made beside it, or the file can't be
      # replaced because it is a mount.
      OVERWRITE = [Errno::EACCES, Errno::EPERM, Errno::EROFS, Errno::EBUSY].freeze
      COPY_BYTES = 1 << 20
      private_constant :GRACE_S, :MESSAGES, :OVERWRITE, :COPY_BYTES

      # @return [String] the folder
      attr_reader :path

      #: (String) -> void
      def initialize(path)
        @path = path
      end

      # The messages of the recorded processes, without repetitions.
      #: () -> Array[String]
      def messages
        File.readlines(File.join(path, MESSAGES), chomp: true, encoding: "UTF-8").map(&:scrub).reject(&:empty?).uniq
      rescue SystemCallError
        []
      end

      # Parts of ended processes that hold anything.
      # @return [Array<String>] paths
      #: () -> Array[String]
      def ended
        wait_for_stragglers
        all.map(&:path).reject { |path| locked?(path) || File.zero?(path) }
      end

      # Joins the parts of ended processes into the recording and deletes them. The parts of the command's own process
      # come first. A part that can't be written stays in the folder.
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

      # Renames the part if possible: that needs no space on the disk and can't fail half-way. In all ways, an older
      # recording stays until the new one is complete.
      def place(part, recording)
        return append(part, recording) if File.exist?(recording) && !File.file?(recording)

        File.rename(part, recording)
        share(recording)
      rescue Errno::EXDEV
        replace(part, recording)
      rescue *OVERWRITE
        overwrite(part, recording)
      end

      # The part's content is in the recording: a failure loses nothing.
      def remove(part)
        File.unlink(part)
      rescue SystemCallError
        nil
      end

      # Gives a new recording the usual permissions. A failure leaves it readable by its owner only.
      def share(file)
        File.chmod(0o666 & ~File.umask, file)
      rescue SystemCallError
        nil
      end

      # For a part on another file system: copies it beside the recording, then renames the copy.
      def replace(part, recording)
        near = File.join(File.dirname(recording), ".pitwall-#{Process.pid}.part")
        copy(part, near)
        share(near)
        File.rename(near, recording)
        remove(part)
      rescue *OVERWRITE
        overwrite(part, recording)
      ensure
        FileUtils.rm_f(near) if near
      end

      # Appends the part to the older recording first, which fails if the disk is full. Moving it to the front then
      # needs no space.
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
          at += file.pwrite(file.pread([COPY_BYTES, size - at].min, from + at), at) while at < size
          file.truncate(size)
        end
      end

      def append(part, recording)
        copy(part, recording)
        remove(part)
      end

      # Copies a part completely or not at all: after a failure the recording is truncated to its former size.
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
        nil # a process that started late has written its part there
      end
    end
  end
end
