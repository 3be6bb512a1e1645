# frozen_string_literal: true

require "pitwall/errors"

module Pitwall
  module CLI
    # Writes the file that `--out` names. The file must be none of the inputs. An error leaves the old file unchanged.
    module OutputFile
      # Errors of creating a temporary file beside the file, or of renaming it (a mount point).
      # After one of these the file is written in place.
      IN_PLACE = [Errno::EACCES, Errno::EPERM, Errno::EROFS, Errno::EBUSY].freeze
      private_constant :IN_PLACE

      module_function

      # Checks the name. Paths are compared by file, so that links to an input are found.
      # @raise [UsageError] the name is empty, or the file is an input or the recording
      #: (String, Array[String]) -> void
      def check(file, inputs)
        raise UsageError, "--out needs a name: --out FILE, or - for standard output" if file.empty?

        input = inputs.find { |candidate| same?(file, candidate) } or return

        raise UsageError, "--out #{file}: is the recording#{" (#{input})" unless input == file}, " \
                          "which it would overwrite: name another file"
      end

      # Checks that the file can be written, without changing it.
      # @raise [UsageError] the file can't be written
      #: (String) -> void
      def probe(file)
        existed = File.exist?(file)
        File.open(file, File::WRONLY | File::CREAT | File::APPEND) { nil }
        File.unlink(File.realpath(file)) unless existed
      rescue SystemCallError, ArgumentError => error
        raise UsageError, "cannot write --out #{file}: #{reason(error)}"
      end

      # Writes a temporary file beside the file, then renames it. A device or a pipe is written directly.
      # @yield [IO] the file to write to
      # @return the block's value
      # @raise [UsageError] the file can't be written; the old file is unchanged
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

      # Whether two paths are the same file. A file that does not exist yet is compared by its real path.
      # @api private
      #: (String, String) -> bool
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
