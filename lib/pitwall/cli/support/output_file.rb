# frozen_string_literal: true

require "pitwall/errors"

module Pitwall
  module CLI
    # The file that `--out` names. It is never one that is read, and there is a whole new one or the old one, nothing between.
    module OutputFile
      # Where no file can be put beside it, or put in its place (a mount), it is written as it is.
      IN_PLACE = [Errno::EACCES, Errno::EPERM, Errno::EROFS, Errno::EBUSY].freeze
      private_constant :IN_PLACE

      module_function

      # Refuses no name, and a file that is also an input or the recording, whatever it is called there.
      # @raise [UsageError]
      #: (String, Array[String]) -> void
      def check(file, inputs)
        raise UsageError, "--out needs a name: --out FILE, or - for standard output" if file.empty?

        input = inputs.find { |candidate| same?(file, candidate) } or return

        raise UsageError, "--out #{file}: is the recording#{" (#{input})" unless input == file}, which it would overwrite: name another file"
      end

      # Opens it and leaves it as it is.
      # @raise [UsageError] when it can't be written
      #: (String) -> void
      def probe(file)
        existed = File.exist?(file)
        File.open(file, File::WRONLY | File::CREAT | File::APPEND) { nil }
        File.unlink(File.realpath(file)) unless existed
      rescue SystemCallError, ArgumentError => error
        raise UsageError, "cannot write --out #{file}: #{reason(error)}"
      end

      # Writes it whole: beside it first, then in its place. A device or a pipe is written as it is.
      # @raise [UsageError] when it can't be written; what was there is there still
      #: [T] (String) { (IO) -> T } -> T
      def write(file, &block)
        existing = File.stat(file) if File.exist?(file)
        return File.open(file, "w:UTF-8", &block) if existing && !existing.file?
        raise Errno::EACCES if existing && !existing.writable?

        replace(File.realdirpath(file), existing, &block)
      rescue Errno::EPIPE
        raise
      rescue SystemCallError => error
        raise UsageError, "cannot write --out #{file}: #{reason(error)}"
      end

      # @api private
      def replace(file, existing, &block)
        part = File.join(File.dirname(file), ".pitwall-#{Process.pid}.part")
        begin
          result = File.open(part, "wx:UTF-8") do |out|
            out.chmod(existing.mode & 0o777) if existing
            block.call(out)
          end
          File.rename(part, file)
          result
        rescue *IN_PLACE
          File.open(file, "w:UTF-8", &block)
        ensure
          File.unlink(part) if File.exist?(part)
        end
      end
      private_class_method :replace

      # @api private
      def same?(file, other)
        return File.file?(file) && File.identical?(file, other) if File.exist?(file) || File.exist?(other)

        File.realdirpath(file) == File.realdirpath(other)
      rescue SystemCallError, ArgumentError
        false
      end
      private_class_method :same?

      # "Permission denied @ rb_sysopen - x" → "Permission denied"
      # @api private
      def reason(error) = error.is_a?(SystemCallError) ? SystemCallError.new(error.errno).message : error.message
      private_class_method :reason
    end
  end
end
